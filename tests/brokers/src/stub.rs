//! A small HTTP server that answers as a test wants and remembers who asked: for credentials that real servers do not check.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use anyhow::Result;

/// What was asked.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// `POST /path`.
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name)?;
        Some(&found.1)
    }

    /// The access key that signed the request.
    pub fn key(&self) -> Option<&str> {
        let rest = self.header("authorization")?.split_once("Credential=")?.1;
        Some(rest.split_once('/')?.0)
    }
}

/// Status, headers and body of an answer.
pub type Answer = (u16, Vec<(&'static str, String)>, Vec<u8>);

/// A server on a free loopback port. Its thread ends with the test.
#[derive(Debug)]
pub struct Stub {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Stub {
    pub fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (asked.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (kept.clone(), answer.clone());
                thread::spawn(move || serve(stream, &kept, answer.as_ref()));
            }
        });
        Ok(Self { url, asked })
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Answers one request and closes.
fn serve(
    mut stream: TcpStream,
    kept: &Mutex<Vec<Asked>>,
    answer: &dyn Fn(&Asked) -> Answer,
) -> Option<()> {
    let asked = read(&stream)?;
    let (status, headers, body) = answer(&asked);
    kept.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(asked);
    let mut head = format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
    stream.write_all(&body).ok()
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut lines = BufReader::new(stream);
    let mut asked = Asked::default();
    lines.read_line(&mut asked.line).ok()?;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        asked
            .headers
            .push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = asked
        .header("content-length")
        .and_then(|text| text.parse().ok());
    asked.body = vec![0; length.unwrap_or(0)];
    lines.read_exact(&mut asked.body).ok()?;
    Some(asked)
}
