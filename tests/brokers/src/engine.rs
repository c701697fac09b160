//! The whole engine, as the window and the command line have it, in tests and benchmarks.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use dlo_core::{Address, Secrets};
use dlo_engine::{
    Ask, EngineHandle, News, Settings,
    command::{Act, Answers, ConnectionId, LookAsk, LookId, PlanAsk, PlanId, RunAsk, Selection},
    event::{LookOpened, RunProgress, RunReport},
    home::Home,
    registry::Registry,
};
use dlo_kafka::KafkaConnector;
use dlo_memory::MemoryConnector;
use dlo_rabbitmq::Rabbit;

/// A running engine that knows RabbitMQ, Kafka and the memory broker.
#[derive(Debug)]
pub struct Bench(EngineHandle);

impl Bench {
    pub fn new(home: &tempfile::TempDir) -> Result<Self> {
        let settings = Settings {
            registry: Registry::default()
                .with(MemoryConnector)
                .with(Rabbit)
                .with(KafkaConnector),
            home: Home::at(home.path()),
            who: "tester".to_owned(),
            wake: Arc::new(|| ()),
        };
        Ok(Self(EngineHandle::start(settings)?))
    }

    /// All answers to one question.
    ///
    /// # Errors
    /// What the question failed with.
    pub async fn ask(&mut self, ask: Ask) -> Result<Vec<News>> {
        let task = self.0.ask(ask)?;
        let mut news = Vec::new();
        loop {
            let event = self.0.next().await.context("the engine ended")?;
            match event.news {
                _ if event.task != task => {}
                News::Done => return Ok(news),
                News::Failed(error) => return Err(error.into()),
                other => news.push(other),
            }
        }
    }

    pub async fn connect(&mut self, place: &str) -> Result<ConnectionId> {
        let ask = Ask::Connect {
            place: place.to_owned(),
            secrets: Secrets::default(),
            registry: None,
        };
        let news = self.ask(ask).await?;
        let connected = news.iter().find_map(|news| match news {
            News::Connected(connected) => Some(connected.connection),
            _ => None,
        });
        connected.context("not connected")
    }

    pub async fn look(&mut self, connection: ConnectionId, queue: &str) -> Result<LookId> {
        Ok(self.open(connection, queue).await?.look)
    }

    /// Opens a look at a queue, loads it to its end, and gives it with its rows.
    pub async fn open(&mut self, connection: ConnectionId, queue: &str) -> Result<LookOpened> {
        self.open_with(connection, Address::queue(queue), LookAsk::default())
            .await
    }

    /// Opens a look and loads it to its end, its limit, or until the store is full.
    pub async fn open_with(
        &mut self,
        connection: ConnectionId,
        address: Address,
        look: LookAsk,
    ) -> Result<LookOpened> {
        let ask = Ask::Look {
            connection,
            address,
            look,
        };
        let news = self.ask(ask).await?;
        let opened = news.into_iter().find_map(|news| match news {
            News::LookOpened(opened) => Some(opened),
            _ => None,
        });
        opened.context("no look")
    }

    /// Plans an act on all messages of a look and carries it out, with every question answered by yes.
    pub async fn act(&mut self, look: LookId, act: Act) -> Result<Arc<RunReport>> {
        self.act_until(look, act, |_| false).await
    }

    /// Carries a plan out, with every question answered by yes.
    pub async fn run(&mut self, plan: PlanId) -> Result<Arc<RunReport>> {
        self.run_until(plan, |_| false).await
    }

    /// Ends the engine, on a thread that may wait for it.
    pub async fn end(self) -> Result<()> {
        Ok(tokio::task::spawn_blocking(move || drop(self)).await?)
    }

    /// As [`Bench::act`], and cancels the run as soon as its progress is `enough`.
    pub async fn act_until(
        &mut self,
        look: LookId,
        act: Act,
        enough: impl Fn(&RunProgress) -> bool,
    ) -> Result<Arc<RunReport>> {
        let plan = self.plan(look, act).await?;
        self.run_until(plan, enough).await
    }

    async fn run_until(
        &mut self,
        plan: PlanId,
        enough: impl Fn(&RunProgress) -> bool,
    ) -> Result<Arc<RunReport>> {
        let run = Ask::Run(RunAsk {
            plan,
            why: "a test".to_owned(),
            answers: Answers {
                all: true,
                ..Answers::default()
            },
        });
        let task = self.0.ask(run)?;
        let mut report = None;
        loop {
            let event = self.0.next().await.context("the engine ended")?;
            match event.news {
                _ if event.task != task => {}
                News::RunProgress(progress) if enough(&progress) => {
                    self.0.ask(Ask::Cancel { task })?;
                }
                News::RunFinished(finished) => report = Some(finished),
                News::Failed(error) => return Err(error.into()),
                News::Done | News::Cancelled => return report.context("no report"),
                _ => {}
            }
        }
    }

    /// Plans an act on all messages of a look.
    pub async fn plan(&mut self, look: LookId, act: Act) -> Result<PlanId> {
        let plan = Ask::Plan(PlanAsk {
            look,
            selection: Selection::All,
            act,
        });
        let news = self.ask(plan).await?;
        let planned = news.iter().find_map(|news| match news {
            News::Planned(plan) => Some(plan.id),
            _ => None,
        });
        planned.context("no plan")
    }
}
