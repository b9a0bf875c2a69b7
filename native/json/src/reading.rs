//! From bytes to values, by serde_json; what is read has a depth, and texts a length.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::{Value, DEEPEST};

/// Why JSON is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The text says what is wrong, and where.
    NotJson(String),
    TooDeep,
    TooLongText,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotJson(why) => write!(formatter, "is not JSON: {why}"),
            Error::TooDeep => formatter.write_str("is nested too deeply"),
            Error::TooLongText => formatter.write_str("has a text that is too long"),
        }
    }
}

/// Return what *content* holds, whose texts have at most so many bytes.
pub fn read(content: &[u8], most_text_bytes: usize) -> Result<Value, Error> {
    let refused = Cell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(content);
    let seed = Seed { most_text_bytes, depth: 0, refused: &refused };
    seed.deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| refused.take().unwrap_or_else(|| Error::NotJson(error.to_string())))
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    most_text_bytes: usize,
    depth: usize,
    /// Which limit ended the reading: serde's errors carry texts only.
    refused: &'a Cell<Option<Error>>,
}

impl<'a> Seed<'a> {
    fn refuse<E: serde::de::Error>(&self, error: Error) -> E {
        let text = E::custom(&error);
        self.refused.set(Some(error));
        text
    }

    fn inner<E: serde::de::Error>(&self) -> Result<Seed<'a>, E> {
        if self.depth == DEEPEST {
            return Err(self.refuse(Error::TooDeep));
        }
        Ok(Seed { depth: self.depth + 1, ..*self })
    }

    fn check_text<E: serde::de::Error>(&self, text: &str) -> Result<(), E> {
        if text.len() > self.most_text_bytes {
            return Err(self.refuse(Error::TooLongText));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Negative(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Natural(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.check_text(text)?;
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut object = Vec::new();
        while let Some(name) = members.next_key::<String>()? {
            self.check_text(&name)?;
            object.push((name, members.next_value_seed(inner)?));
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::most_values;

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    #[test]
    fn every_kind_of_value_is_read_in_its_order() {
        let content =
            r#" {"b": [null, true, -3, 18446744073709551615, 0.1], "a": "\u00e9\ud83d\ude00", "b": {}} "#;
        let list = vec![
            Value::Null,
            Value::Bool(true),
            Value::Negative(-3),
            Value::Natural(u64::MAX),
            Value::Float(0.1),
        ];
        let members = [("b", Value::List(list)), ("a", text("é😀")), ("b", Value::Object(vec![]))];
        let expected = members.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(read(content.as_bytes(), 8), Ok(Value::Object(expected.into())));
    }

    #[test]
    fn what_is_not_json_is_said_with_its_place() {
        for (content, place) in [
            (&b"{\"a\": NaN}"[..], "line 1 column 7"),
            (b"[1,\n 2", "line 2 column 2"),
            (b"", "line 1 column 0"),
            (b"1 2", "line 1 column 3"),
            (b"\"\xff\"", "line 1 column 2"),
            (b"\"\\ud800\"", "line 1 column"),
        ] {
            match read(content, 8) {
                Err(Error::NotJson(why)) => assert!(why.contains(place), "{why}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn depth_and_texts_have_limits() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(read(nested(DEEPEST).as_bytes(), 8).is_ok());
        assert_eq!(read(nested(DEEPEST + 1).as_bytes(), 8), Err(Error::TooDeep));
        assert_eq!(read("[".repeat(1 << 20).as_bytes(), 8), Err(Error::TooDeep));
        assert_eq!(read(b"\"12345678\"", 8), Ok(text("12345678")));
        assert_eq!(read(b"[\"123456789\"]", 8), Err(Error::TooLongText));
        assert_eq!(read(b"{\"123456789\": 1}", 8), Err(Error::TooLongText));
    }

    #[test]
    fn values_are_at_most_what_separates_them() {
        assert_eq!(most_values(b"[1, 2, {\"a\": []}]"), 5);
        assert_eq!(most_values(b"7"), 0);
    }
}
