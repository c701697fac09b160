//! Asking the engine and waiting for the answers.

use dlo_core::{Address, Error, ErrorKind, Result, Secrets};
use dlo_engine::{
    Ask, EngineHandle, News, Settings, TaskId,
    command::LookAsk,
    event::{Connected, Listed, LookOpened, LookProgress},
};

use crate::{args::Where, progress::Progress};

/// A running engine and one task at a time.
#[derive(Debug)]
pub struct Client {
    handle: EngineHandle,
}

/// An open look, loaded as far as asked.
#[derive(Debug)]
pub struct Looked {
    pub opened: LookOpened,
    pub progress: LookProgress,
}

impl Client {
    pub fn start(settings: Settings) -> Result<Self> {
        let handle = EngineHandle::start(settings).map_err(|error| {
            Error::new(ErrorKind::Unexpected, "start the engine", error.to_string())
        })?;
        Ok(Self { handle })
    }

    /// Asks, hands every answer to `take`, and returns when the task is over. Ctrl-C cancels the task, which gives back what it
    /// holds; a second Ctrl-C ends the program.
    pub async fn ask(&mut self, ask: Ask, mut take: impl FnMut(News)) -> Result<()> {
        let task = self.send(ask).await?;
        let mut interrupted = 0;
        loop {
            let event = tokio::select! {
                event = self.handle.next() => event,
                () = stop_wanted() => {
                    interrupted += 1;
                    if interrupted > 1 {
                        return Err(Error::cancelled("finish"));
                    }
                    crate::out::remark("stopping after the message in hand; once more to stop at once");
                    self.send(Ask::Cancel { task }).await?;
                    continue;
                }
            };
            let Some(event) = event else {
                return Err(Error::new(
                    ErrorKind::Unexpected,
                    "reach the engine",
                    "it has ended",
                ));
            };
            if event.task != task {
                self.unasked(&event.news);
                continue;
            }
            match event.news {
                News::Done => return Ok(()),
                News::Cancelled => return Err(Error::cancelled("finish")),
                News::Failed(error) => return Err(error),
                News::Notice(text) => crate::out::remark(&text),
                news => take(news),
            }
        }
    }

    /// What a look tells after its task is over.
    fn unasked(&self, news: &News) {
        match news {
            News::HoldLost { why, .. } => crate::out::remark(why),
            News::Notice(text) => crate::out::remark(text),
            _ => {}
        }
    }

    async fn send(&self, ask: Ask) -> Result<TaskId> {
        // A few retries: the queue of commands is long, and the engine empties it at once.
        for _ in 0..100 {
            if let Ok(task) = self.handle.ask(ask.clone()) {
                return Ok(task);
            }
            tokio::task::yield_now().await;
        }
        Err(Error::new(
            ErrorKind::Throttled,
            "ask the engine",
            "it is busy",
        ))
    }

    /// Asks for exactly one piece of news.
    pub async fn ask_for<T>(
        &mut self,
        ask: Ask,
        mut pick: impl FnMut(News) -> Option<T>,
    ) -> Result<T> {
        let mut picked = None;
        self.ask(ask, |news| picked = pick(news).or(picked.take()))
            .await?;
        picked.ok_or_else(|| {
            Error::new(
                ErrorKind::Unexpected,
                "reach the engine",
                "it gave no answer",
            )
        })
    }

    /// Connects to a place, with a schema registry if one is named.
    pub async fn connect_at(&mut self, at: &Where) -> Result<std::sync::Arc<Connected>> {
        self.connect_with(&at.place, at.registry.clone()).await
    }

    pub async fn connect(&mut self, place: &str) -> Result<std::sync::Arc<Connected>> {
        self.connect_with(place, None).await
    }

    async fn connect_with(
        &mut self,
        place: &str,
        registry: Option<String>,
    ) -> Result<std::sync::Arc<Connected>> {
        let ask = Ask::Connect {
            place: place.to_owned(),
            secrets: Secrets::default(),
            registry,
        };
        let pick = |news| {
            if let News::Connected(connected) = news {
                Some(connected)
            } else {
                None
            }
        };
        self.ask_for(ask, pick).await
    }

    pub async fn find(
        &mut self,
        connected: &Connected,
        name: &str,
    ) -> Result<std::sync::Arc<Listed>> {
        let ask = Ask::Find {
            connection: connected.connection,
            name: name.to_owned(),
        };
        let pick = |news| {
            if let News::Destination { listed, .. } = news {
                Some(listed)
            } else {
                None
            }
        };
        self.ask_for(ask, pick).await
    }

    /// Opens a look and loads it up to its limit. `take` sees each step, to print while messages arrive.
    pub async fn look(
        &mut self,
        connected: &Connected,
        address: &Address,
        look: LookAsk,
        mut take: impl FnMut(&Looked),
    ) -> Result<Looked> {
        let ask = Ask::Look {
            connection: connected.connection,
            address: address.clone(),
            look,
        };
        let bar = Progress::new();
        let mut looked: Option<Looked> = None;
        let outcome = self
            .ask(ask, |news| match news {
                News::LookOpened(opened) => {
                    if !opened.cost.line.is_empty() {
                        crate::out::remark(&opened.cost.line);
                    }
                    opened
                        .cost
                        .reasons
                        .iter()
                        .for_each(|reason| crate::out::remark(reason));
                    looked = Some(Looked {
                        opened,
                        progress: LookProgress::default(),
                    });
                }
                News::LookProgress { progress, .. } | News::LookEnded { progress, .. } => {
                    bar.look(&progress);
                    step(&mut looked, progress, &mut take);
                }
                News::LookPaused { progress, why, .. } => {
                    crate::out::remark(&why);
                    step(&mut looked, progress, &mut take);
                }
                _ => {}
            })
            .await;
        bar.clear();
        match (outcome, looked) {
            (Ok(()), Some(looked)) => Ok(looked),
            (Ok(()), None) => Err(Error::new(
                ErrorKind::Unexpected,
                "look",
                "the engine gave no answer",
            )),
            (Err(error), Some(looked)) => {
                self.close(&looked).await?;
                Err(error)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Gives everything back; says what a person should know about it.
    pub async fn close(&mut self, looked: &Looked) -> Result<dlo_core::Returned> {
        let ask = Ask::CloseLook {
            look: looked.opened.look,
        };
        let pick = |news| {
            if let News::LookClosed { returned, .. } = news {
                Some(returned)
            } else {
                None
            }
        };
        let returned = self.ask_for(ask, pick).await?;
        returned
            .notes
            .iter()
            .for_each(|note| crate::out::remark(note));
        if returned.lost_hold > 0 {
            crate::out::remark(&format!(
                "{} messages were no longer held; they are in their queue.",
                returned.lost_hold
            ));
        }
        Ok(returned)
    }
}

/// Ctrl-C, or the signal that a service manager sends.
async fn stop_wanted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut end) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = end.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn step(looked: &mut Option<Looked>, progress: LookProgress, take: &mut impl FnMut(&Looked)) {
    if let Some(looked) = looked {
        looked.progress = progress;
        take(looked);
    }
}
