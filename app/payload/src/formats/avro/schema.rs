//! Avro schemas as the reader and writer use them: all types in one list, named ones found by name.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::schemas::Reference;
use crate::time::Unit;

/// A schema with everything it refers to.
#[derive(Debug)]
pub struct AvroSchema {
    pub(super) types: Vec<Type>,
    pub(super) root: TypeId,
}

/// A place in the list of types.
pub(super) type TypeId = usize;

#[derive(Clone, Debug)]
pub(super) enum Type {
    Null,
    Boolean,
    Int(Logical),
    Long(Logical),
    Float,
    Double,
    Bytes(Logical),
    String(Logical),
    Record {
        name: String,
        fields: Vec<Field>,
    },
    Enum {
        name: String,
        symbols: Vec<String>,
    },
    Array(TypeId),
    Map(TypeId),
    Union(Vec<TypeId>),
    Fixed {
        name: String,
        size: usize,
        logical: Logical,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub name: String,
    pub kind: TypeId,
    pub default: Option<Value>,
}

/// What a number or bytes mean. A logical type that does not fit its base is ignored, as the
/// specification asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Logical {
    None,
    Date,
    TimeOfDay(Unit),
    Moment(Unit),
    Local(Unit),
    Decimal { scale: usize },
    Uuid,
    Duration,
}

impl AvroSchema {
    /// Reads a schema; the references come first, each after those it needs itself.
    pub fn parse(text: &str, references: &[Reference]) -> Result<Self, String> {
        let mut parser = Parser {
            types: Vec::new(),
            names: HashMap::new(),
            depth: 0,
        };
        for reference in references {
            parser
                .text(&reference.text)
                .map_err(|error| format!("in the reference {}: {error}", reference.name))?;
        }
        let root = parser.text(text)?;
        Ok(Self {
            types: parser.types,
            root,
        })
    }

    /// The full name of the outermost record, enum or fixed.
    pub fn name(&self) -> Option<&str> {
        self.types[self.root].name()
    }

    pub(super) fn get(&self, id: TypeId) -> &Type {
        &self.types[id]
    }
}

impl Type {
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Record { name, .. } | Self::Enum { name, .. } | Self::Fixed { name, .. } => {
                Some(name)
            }
            _ => None,
        }
    }

    /// The type in words, for a sentence that says what was expected.
    pub fn describe(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Boolean => "true or false".into(),
            Self::Int(Logical::None) => "an int (32 bits)".into(),
            Self::Long(Logical::None) => "a long (64 bits)".into(),
            Self::Int(Logical::Date) => "a date".into(),
            Self::Int(_) | Self::Long(_) => "a time".into(),
            Self::Float | Self::Double => "a number".into(),
            Self::Bytes(Logical::Decimal { scale })
            | Self::Fixed {
                logical: Logical::Decimal { scale },
                ..
            } => format!("a decimal with {scale} places"),
            Self::Bytes(_) => "bytes".into(),
            Self::String(Logical::Uuid) => "a UUID".into(),
            Self::String(_) => "text".into(),
            Self::Record { name, .. } => format!("a record {name}"),
            Self::Enum { symbols, .. } => format!("one of {}", symbols.join(", ")),
            Self::Array(_) => "a list".into(),
            Self::Map(_) => "an object".into(),
            Self::Union(_) => "one of several types".into(),
            Self::Fixed { size, .. } => format!("{size} bytes"),
        }
    }
}

struct Parser {
    types: Vec<Type>,
    names: HashMap<String, TypeId>,
    depth: usize,
}

impl Parser {
    fn text(&mut self, text: &str) -> Result<TypeId, String> {
        // A registry may hold a bare name, which is no JSON.
        let value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(_)
                if text
                    .trim()
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')) =>
            {
                Value::String(text.trim().to_owned())
            }
            Err(error) => return Err(format!("it is no JSON: {error}")),
        };
        self.value(&value, "")
    }

    fn add(&mut self, kind: Type) -> TypeId {
        self.types.push(kind);
        self.types.len() - 1
    }

    fn value(&mut self, value: &Value, space: &str) -> Result<TypeId, String> {
        self.depth += 1;
        if self.depth > 200 {
            return Err("it nests deeper than 200 levels".into());
        }
        let id = match value {
            Value::String(name) => self.named(name, space),
            Value::Array(branches) => self.union(branches, space),
            Value::Object(object) => self.object(object, space),
            other => Err(format!("{other} is no type")),
        };
        self.depth -= 1;
        id
    }

    fn named(&mut self, name: &str, space: &str) -> Result<TypeId, String> {
        if let Some(primitive) = primitive(name, Logical::None) {
            return Ok(self.add(primitive));
        }
        let full = full_name(name, space);
        let found = self
            .names
            .get(&full)
            .or_else(|| self.names.get(name))
            .copied();
        found.ok_or_else(|| format!("the type {full} is not defined; is a reference missing?"))
    }

    fn union(&mut self, branches: &[Value], space: &str) -> Result<TypeId, String> {
        if branches.is_empty() {
            return Err("a union has no branches".into());
        }
        let branches = branches
            .iter()
            .map(|branch| self.value(branch, space))
            .collect::<Result<_, _>>()?;
        Ok(self.add(Type::Union(branches)))
    }

    fn object(&mut self, object: &Map<String, Value>, space: &str) -> Result<TypeId, String> {
        let kind = match object.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(other) => return self.value(other, space),
            None => return Err("an object has no \"type\"".into()),
        };
        match kind {
            "record" | "error" => self.record(object, space),
            "enum" => self.enumeration(object, space),
            "fixed" => self.fixed(object, space),
            "array" => {
                let items = self.value(
                    object.get("items").ok_or("an array has no \"items\"")?,
                    space,
                )?;
                Ok(self.add(Type::Array(items)))
            }
            "map" => {
                let values = self.value(
                    object.get("values").ok_or("a map has no \"values\"")?,
                    space,
                )?;
                Ok(self.add(Type::Map(values)))
            }
            other => match primitive(other, logical(other, object)) {
                Some(primitive) => Ok(self.add(primitive)),
                None => self.named(other, space),
            },
        }
    }

    /// Takes the name before the fields are read, so that a record may hold itself.
    fn define(
        &mut self,
        object: &Map<String, Value>,
        space: &str,
    ) -> Result<(TypeId, String, String), String> {
        let name = object
            .get("name")
            .and_then(Value::as_str)
            .ok_or("a record, enum or fixed has no \"name\"")?;
        let space = object
            .get("namespace")
            .and_then(Value::as_str)
            .unwrap_or(space);
        let full = full_name(name, space);
        let own_space = full
            .rsplit_once('.')
            .map_or("", |(space, _)| space)
            .to_owned();
        let id = self.add(Type::Null);
        self.names.insert(full.clone(), id);
        for alias in object
            .get("aliases")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            self.names.entry(full_name(alias, &own_space)).or_insert(id);
        }
        Ok((id, full, own_space))
    }

    fn record(&mut self, object: &Map<String, Value>, space: &str) -> Result<TypeId, String> {
        let (id, name, space) = self.define(object, space)?;
        let fields = object
            .get("fields")
            .and_then(Value::as_array)
            .ok_or_else(|| format!("the record {name} has no \"fields\""))?;
        let fields = fields
            .iter()
            .map(|field| self.field(field, &name, &space))
            .collect::<Result<_, _>>()?;
        self.types[id] = Type::Record { name, fields };
        Ok(id)
    }

    fn field(&mut self, field: &Value, record: &str, space: &str) -> Result<Field, String> {
        let name = field
            .get("name")
            .and_then(Value::as_str)
            .ok_or_else(|| format!("a field of {record} has no \"name\""))?
            .to_owned();
        let kind = field
            .get("type")
            .ok_or_else(|| format!("the field {name} of {record} has no \"type\""))?;
        // Some writers put the logical type beside the field's type instead of inside it.
        let kind = match (kind, field.get("logicalType")) {
            (Value::String(_), Some(_)) => self.value(field, space)?,
            _ => self.value(kind, space)?,
        };
        Ok(Field {
            name,
            kind,
            default: field.get("default").cloned(),
        })
    }

    fn enumeration(&mut self, object: &Map<String, Value>, space: &str) -> Result<TypeId, String> {
        let (id, name, _) = self.define(object, space)?;
        let symbols = object
            .get("symbols")
            .and_then(Value::as_array)
            .ok_or_else(|| format!("the enum {name} has no \"symbols\""))?;
        let symbols = symbols
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        self.types[id] = Type::Enum { name, symbols };
        Ok(id)
    }

    fn fixed(&mut self, object: &Map<String, Value>, space: &str) -> Result<TypeId, String> {
        let (id, name, _) = self.define(object, space)?;
        let size = object
            .get("size")
            .and_then(Value::as_u64)
            .and_then(|size| usize::try_from(size).ok())
            .ok_or_else(|| format!("the fixed {name} has no \"size\""))?;
        let logical = match logical("fixed", object) {
            Logical::Duration if size != 12 => Logical::None,
            Logical::Uuid if size != 16 => Logical::None,
            other => other,
        };
        self.types[id] = Type::Fixed {
            name,
            size,
            logical,
        };
        Ok(id)
    }
}

fn full_name(name: &str, space: &str) -> String {
    match name.strip_prefix('.') {
        Some(name) => name.to_owned(),
        None if name.contains('.') || space.is_empty() => name.to_owned(),
        None => format!("{space}.{name}"),
    }
}

fn primitive(name: &str, logical: Logical) -> Option<Type> {
    Some(match name {
        "null" => Type::Null,
        "boolean" => Type::Boolean,
        "int" => Type::Int(logical),
        "long" => Type::Long(logical),
        "float" => Type::Float,
        "double" => Type::Double,
        "bytes" => Type::Bytes(logical),
        "string" => Type::String(logical),
        _ => return None,
    })
}

fn logical(base: &str, object: &Map<String, Value>) -> Logical {
    let name = object
        .get("logicalType")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match (base, name) {
        ("int", "date") => Logical::Date,
        ("int", "time-millis") => Logical::TimeOfDay(Unit::Millis),
        ("long", "time-micros") => Logical::TimeOfDay(Unit::Micros),
        ("long", "timestamp-millis") => Logical::Moment(Unit::Millis),
        ("long", "timestamp-micros") => Logical::Moment(Unit::Micros),
        ("long", "timestamp-nanos") => Logical::Moment(Unit::Nanos),
        ("long", "local-timestamp-millis") => Logical::Local(Unit::Millis),
        ("long", "local-timestamp-micros") => Logical::Local(Unit::Micros),
        ("long", "local-timestamp-nanos") => Logical::Local(Unit::Nanos),
        ("string" | "fixed", "uuid") => Logical::Uuid,
        ("fixed", "duration") => Logical::Duration,
        ("bytes" | "fixed", "decimal") => decimal(object),
        _ => Logical::None,
    }
}

fn decimal(object: &Map<String, Value>) -> Logical {
    let number = |name: &str| object.get(name).and_then(Value::as_u64);
    let scale = number("scale").unwrap_or(0);
    match number("precision") {
        Some(precision) if precision > 0 && scale <= precision && scale <= 10_000 => {
            Logical::Decimal {
                scale: scale as usize,
            }
        }
        _ => Logical::None,
    }
}
