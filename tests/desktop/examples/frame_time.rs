//! The message table at ten million rows while 100,000 messages a second arrive: CPU time of each frame.
//!
//! `cargo run --release -p dlo-desktop-tests --example frame_time [ROWS] [PER_SECOND] [FRAMES]`
//! prints the percentiles; the aim is 99 of 100 frames under 4 ms. What is timed is the thread that draws: logic, layout and
//! tessellation, as in the window; the messages are packed on another thread, as the engine does it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use cpu_time::ThreadTime;
use dead_letter_office::{
    app::{App, Start},
    dispatch::Link,
    files::NativePicker,
    notify::NativeNotifier,
    theme,
};
use dlo_core::{Address, Delivery, LookCost, Message, Millis, Position, ServerInfo};
use dlo_engine::{
    Ask, Busy, Event, News, TaskId,
    command::{ConnectionId, LookId},
    event::{Connected, LookOpened, LookProgress},
    profile::Mode,
    store::{Budget, LookView, NewRow},
};
use egui::{MouseWheelSource, MouseWheelUnit, RawInput, Rect, TouchPhase, pos2, vec2};

/// An engine that says only what it was told to say.
#[derive(Debug, Default)]
struct Script {
    news: Vec<Event>,
    asked: u64,
}

impl Link for Script {
    fn ask(&mut self, _: Ask) -> Result<TaskId, Busy> {
        self.asked += 1;
        Ok(TaskId(1_000_000 + self.asked))
    }

    fn try_next(&mut self) -> Option<Event> {
        (!self.news.is_empty()).then(|| self.news.remove(0))
    }
}

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|text| text.replace('_', "").parse::<u64>().unwrap_or(0));
    let rows = numbers
        .next()
        .filter(|rows| *rows > 0)
        .unwrap_or(10_000_000);
    let per_second = numbers.next().unwrap_or(100_000);
    let frames = numbers.next().filter(|frames| *frames > 0).unwrap_or(1_500);
    let view = LookView::new(Budget { bytes: u64::MAX });
    fill(&view, rows);
    println!("{} rows, {} bytes", view.len(), view.bytes());
    for (name, step) in [
        ("standing still", Step::Still),
        ("wheel 60 px a frame", Step::Wheel),
        ("random jump each frame", Step::Jump),
    ] {
        let times = measure(&view, per_second, frames, step);
        let at =
            |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        println!(
            "{name:<24} median {:.2} ms   90 % {:.2} ms   99 % {:.2} ms   max {:.2} ms",
            at(0.5),
            at(0.9),
            at(0.99),
            at(1.0)
        );
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Still,
    Wheel,
    Jump,
}

fn delivery(index: u64) -> Delivery {
    Delivery {
        message: Message {
            key: Some(Bytes::from(format!("order-{index}"))),
            body: Some(Bytes::from(format!(r#"{{"id":{index},"total":12.30}}"#))),
            ..Message::default()
        },
        position: Position::Index { index },
        lock: None,
        time: Some(Millis(1_790_000_000_000 + index as i64)),
        delivery_count: None,
        facts: BTreeMap::new(),
    }
}

fn append(view: &LookView, count: u64) {
    let first = u64::from(view.len());
    let page: Vec<_> = (first..first + count).map(delivery).collect();
    let row = |delivery: &Delivery| NewRow {
        group: match &delivery.position {
            Position::Index { index } => (index % 3) as u32,
            _ => 0,
        },
        attempts: Some(3),
        time: delivery.time,
        ..NewRow::default()
    };
    view.append(page.iter().map(|delivery| (delivery, row(delivery))));
}

fn fill(view: &LookView, rows: u64) {
    let names = ["NullPointerException", "timeout db-3", "schema orders v7"];
    view.set_groups(
        names
            .map(|name| (name.to_owned(), "bug".to_owned()))
            .to_vec(),
    );
    let mut left = rows;
    while left > 0 {
        let page = left.min(10_000);
        append(view, page);
        left -= page;
    }
}

fn app(view: &Arc<LookView>) -> App {
    let (connection, look, address) = (ConnectionId(1), LookId(1), Address::queue("orders.dlq"));
    let news = [
        News::Connected(Arc::new(Connected {
            connection,
            label: "bench".to_owned(),
            broker: "memory".to_owned(),
            mode: Mode::Normal,
            server: ServerInfo::default(),
        })),
        News::LookOpened(LookOpened {
            look,
            connection,
            address,
            cost: LookCost::default(),
            view: view.clone(),
        }),
        News::LookProgress {
            look,
            progress: LookProgress {
                running: true,
                ..LookProgress::default()
            },
        },
    ];
    let task = TaskId(1);
    App::new(Start {
        link: Box::new(Script {
            news: news.into_iter().map(|news| Event { task, news }).collect(),
            asked: 0,
        }),
        brokers: Vec::new(),
        picker: Arc::new(NativePicker::new()),
        notifier: Arc::new(NativeNotifier),
        open: None,
        clock: Millis::now,
    })
}

/// Frames before the measurement; they load fonts, and sort what is there already into its groups.
const WARM_UP: u64 = 400;

fn measure(view: &Arc<LookView>, per_second: u64, frames: u64, step: Step) -> Vec<Duration> {
    let context = egui::Context::default();
    theme::install(&context);
    context.enable_accesskit();
    let mut app = app(view);
    let stop = Arc::new(AtomicBool::new(false));
    let (writer, stopped) = (view.clone(), stop.clone());
    let producer = std::thread::spawn(move || {
        let begin = Instant::now();
        let mut sent = 0;
        while !stopped.load(Ordering::Relaxed) {
            let due = (begin.elapsed().as_secs_f64() * per_second as f64) as u64;
            if due >= sent + 500 {
                append(&writer, 500);
                sent += 500;
            } else {
                std::thread::yield_now();
            }
        }
    });
    for frame in 0..WARM_UP {
        draw(&context, &mut app, frame, Step::Still);
    }
    if let Some(look) = app.state.active_look() {
        let id = look.id;
        app.look_panel(id).toggle_grouping();
    }
    let mut times: Vec<_> = (WARM_UP..WARM_UP + frames)
        .map(|frame| {
            let before = ThreadTime::now();
            draw(&context, &mut app, frame, step);
            before.elapsed()
        })
        .collect();
    stop.store(true, Ordering::Relaxed);
    drop(producer.join());
    times.sort();
    times
}

fn draw(context: &egui::Context, app: &mut App, frame: u64, step: Step) {
    let pointer = egui::Event::PointerMoved(pos2(900.0, 500.0));
    let mut events = vec![pointer];
    if step == Step::Wheel {
        events.push(egui::Event::MouseWheel {
            unit: MouseWheelUnit::Point,
            delta: vec2(0.0, -60.0),
            phase: TouchPhase::Move,
            modifiers: egui::Modifiers::NONE,
            source: MouseWheelSource::Unknown,
        });
    }
    if step == Step::Jump
        && let Some(look) = app.state.active_look()
    {
        let (id, rows) = (look.id, u64::from(look.view.len()));
        app.look_panel(id).jump((frame * 6_364_136_223) % rows);
    }
    let input = RawInput {
        screen_rect: Some(Rect::from_min_size(pos2(0.0, 0.0), vec2(1600.0, 1000.0))),
        time: Some(frame as f64 / 60.0),
        events,
        ..RawInput::default()
    };
    let output = context.run_ui(input, |ui| {
        app.logic(&ui.ctx().clone());
        app.ui(ui);
    });
    let shapes = output.shapes.clone();
    std::hint::black_box(context.tessellate(shapes, 1.0));
    output.drop_without_applying_deltas();
}
