//! Writing results. A closed pipe (`dlo look … | head`) ends the output quietly.

use std::io::{self, IsTerminal, Write};

use dlo_core::Error;

/// Standard output, buffered.
#[derive(Debug)]
pub struct Out {
    inner: io::BufWriter<io::Stdout>,
    /// Whether results are written as JSON.
    pub json: bool,
    closed: bool,
}

impl Out {
    pub fn new(json: bool) -> Self {
        Self {
            inner: io::BufWriter::with_capacity(1 << 16, io::stdout()),
            json,
            closed: false,
        }
    }

    /// One line.
    pub fn line(&mut self, line: &str) {
        if !self.closed {
            self.closed = writeln!(self.inner, "{line}").is_err();
        }
    }

    /// One JSON object in a line.
    pub fn object(&mut self, object: &serde_json::Value) {
        self.line(&object.to_string());
    }

    /// True when nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn flush(&mut self) {
        self.closed |= self.inner.flush().is_err();
    }

    /// A table with a header row and columns as wide as their content.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        let width = |column: usize| {
            let cells = rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count());
            cells
                .max()
                .unwrap_or(0)
                .max(header[column].chars().count())
                .min(80)
        };
        let widths: Vec<_> = (0..header.len()).map(width).collect();
        let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
        for row in std::iter::once(&header).chain(rows) {
            let cells = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{:<width$}", printable(cell)));
            self.line(cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }
}

/// Text without characters that a terminal would act on: what a message holds must not move the cursor.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// An error on standard error.
pub fn complain(error: &Error) {
    eprintln!("dlo: {}", printable(&error.to_string()));
}

/// A remark on standard error.
pub fn remark(text: &str) {
    eprintln!("dlo: {}", printable(text));
}

/// Whether progress can be shown.
pub fn has_terminal() -> bool {
    io::stderr().is_terminal()
}
