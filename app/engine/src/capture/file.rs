//! Capture files, read and written line by line, so that their size does not matter.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Read as _, Write},
    path::Path,
};

use super::{CaptureError, Captured, Problem, read::parse_line};

/// The longest line a reader takes unless told otherwise, in bytes: the largest body of any of our brokers, as base64.
pub const DEFAULT_LINE_LIMIT: u64 = 512 << 20;

/// Reads the messages of a capture file in order.
///
/// Empty lines and the summary of an export are passed over. After an error in a line it goes on with the next one; the
/// caller decides whether to.
pub struct CaptureReader<R> {
    input: R,
    line: u64,
    limit: u64,
    buffer: Vec<u8>,
    ended: bool,
}

impl CaptureReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Problem::Io`] when it cannot be opened; names the file.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let file = File::open(path).map_err(|error| io_error(path, &error))?;
        Ok(Self::new(BufReader::with_capacity(1 << 16, file)))
    }
}

impl<R: BufRead> CaptureReader<R> {
    pub fn new(input: R) -> Self {
        Self {
            input,
            line: 0,
            limit: DEFAULT_LINE_LIMIT,
            buffer: Vec::new(),
            ended: false,
        }
    }

    /// The same reader, which refuses lines of more than `bytes`.
    pub fn with_line_limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads one line into the buffer; false at the end of the file.
    fn fill(&mut self) -> Result<bool, Problem> {
        self.buffer.clear();
        let mut limited = (&mut self.input).take(self.limit.saturating_add(1));
        let read = limited
            .read_until(b'\n', &mut self.buffer)
            .map_err(io_problem)?;
        if read == 0 {
            return Ok(false);
        }
        self.line += 1;
        if self.buffer.last() != Some(&b'\n') && read as u64 > self.limit {
            self.buffer = Vec::new();
            self.input.skip_until(b'\n').map_err(io_problem)?;
            return Err(Problem::TooLong(self.limit));
        }
        Ok(true)
    }

    fn text(&self) -> Result<&str, Problem> {
        let text = std::str::from_utf8(&self.buffer)
            .map_err(|error| Problem::NotUtf8(error.valid_up_to()))?;
        // Some editors put a byte order mark before the first line.
        Ok(text.trim_start_matches('\u{feff}').trim())
    }

    fn next_message(&mut self) -> Result<Option<Captured>, CaptureError> {
        loop {
            if !self.fill().map_err(CaptureError::new)? {
                self.ended = true;
                return Ok(None);
            }
            let text = self.text().map_err(CaptureError::new)?;
            if text.is_empty() {
                continue;
            }
            match parse_line(text) {
                Err(error) if error.problem == Problem::Summary => {}
                result => return result.map(Some),
            }
        }
    }
}

impl<R: BufRead> Iterator for CaptureReader<R> {
    type Item = Result<Captured, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let result = self.next_message().map_err(|error| {
            // A disk that fails once fails again: do not turn forever.
            self.ended |= matches!(error.problem, Problem::Io(_));
            error.at(self.line.max(1))
        });
        result.transpose()
    }
}

impl<R> fmt::Debug for CaptureReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureReader")
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// Writes messages to a capture file, buffered. Nothing is safe on disk before [`CaptureWriter::finish`].
pub struct CaptureWriter<W: Write> {
    output: BufWriter<W>,
    messages: u64,
}

impl CaptureWriter<File> {
    /// Makes a new file; an existing one is never overwritten.
    ///
    /// # Errors
    /// [`Problem::Io`] when the file exists or cannot be made; names the file.
    pub fn create(path: &Path) -> Result<Self, CaptureError> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        Ok(Self::new(file.map_err(|error| io_error(path, &error))?))
    }

    /// Adds to the end of a file, which is made when it is missing.
    ///
    /// # Errors
    /// [`Problem::Io`] when it cannot be opened; names the file.
    pub fn append(path: &Path) -> Result<Self, CaptureError> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Ok(Self::new(file.map_err(|error| io_error(path, &error))?))
    }

    /// Flushes, and returns only when the messages would survive a crash; gives their number.
    ///
    /// # Errors
    /// [`Problem::Io`] when the disk did not take them.
    pub fn finish_durably(mut self) -> Result<u64, CaptureError> {
        self.flush()?;
        let synced = self.output.get_ref().sync_all();
        synced.map_err(|error| CaptureError::new(io_problem(error)))?;
        Ok(self.messages)
    }
}

impl<W: Write> CaptureWriter<W> {
    pub fn new(output: W) -> Self {
        Self {
            output: BufWriter::with_capacity(1 << 16, output),
            messages: 0,
        }
    }

    /// Writes one line, as [`super::to_line`] or [`Captured::to_line`] made it.
    ///
    /// # Errors
    /// [`Problem::Io`] when it cannot be written; what was written before may not be on disk either.
    pub fn write_line(&mut self, line: &str) -> Result<(), CaptureError> {
        self.messages += 1;
        self.output
            .write_all(line.as_bytes())
            .and_then(|()| self.output.write_all(b"\n"))
            .map_err(|error| CaptureError::new(io_problem(error)).at(self.messages))
    }

    /// Writes one message.
    ///
    /// # Errors
    /// As [`CaptureWriter::write_line`].
    pub fn write(&mut self, captured: &Captured) -> Result<(), CaptureError> {
        self.write_line(&captured.to_line())
    }

    /// How many messages were written.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Hands everything to the output.
    ///
    /// # Errors
    /// [`Problem::Io`] when it did not take it.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        let flushed = self.output.flush();
        flushed.map_err(|error| CaptureError::new(io_problem(error)))
    }

    /// Flushes and gives the number of messages.
    ///
    /// # Errors
    /// As [`CaptureWriter::flush`].
    pub fn finish(mut self) -> Result<u64, CaptureError> {
        self.flush()?;
        Ok(self.messages)
    }
}

impl<W: Write> fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureWriter")
            .field("messages", &self.messages)
            .finish_non_exhaustive()
    }
}

fn io_problem(error: io::Error) -> Problem {
    Problem::Io(error.to_string())
}

fn io_error(path: &Path, error: &io::Error) -> CaptureError {
    CaptureError::new(Problem::Io(format!("{}: {error}", path.display())))
}
