//! The whole engine in a test, with its own home.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use dlo_core::{Address, Secrets};
use dlo_engine::{
    Ask, EngineHandle, News, Settings,
    command::{Act, Answers, ConnectionId, LookAsk, LookId, PlanAsk, RunAsk, Selection},
    event::RunReport,
    home::Home,
    registry::Registry,
};
use dlo_memory::MemoryConnector;
use dlo_rabbitmq::Rabbit;

/// A running engine that knows RabbitMQ and the memory broker.
#[derive(Debug)]
pub struct Bench(EngineHandle);

impl Bench {
    pub fn new(home: &tempfile::TempDir) -> Result<Self> {
        let settings = Settings {
            registry: Registry::default().with(MemoryConnector).with(Rabbit),
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
        let ask = Ask::Look {
            connection,
            address: Address::queue(queue),
            look: LookAsk::default(),
        };
        let news = self.ask(ask).await?;
        let opened = news.iter().find_map(|news| match news {
            News::LookOpened(opened) => Some(opened.look),
            _ => None,
        });
        opened.context("no look")
    }

    /// Plans an act on all messages of a look and carries it out, with every question answered by yes.
    pub async fn act(&mut self, look: LookId, act: Act) -> Result<Arc<RunReport>> {
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
        let run = Ask::Run(RunAsk {
            plan: planned.context("no plan")?,
            why: "a test".to_owned(),
            answers: Answers {
                all: true,
                ..Answers::default()
            },
        });
        let news = self.ask(run).await?;
        let report = news.into_iter().find_map(|news| match news {
            News::RunFinished(report) => Some(report),
            _ => None,
        });
        report.context("no report")
    }
}
