//! Drawing pieces that know egui and no broker.

pub mod confirm;
pub mod diff_view;
pub mod figure;
pub mod hex_view;
pub mod json_tree;
pub mod message_table;
pub mod parts;
pub mod path_field;
pub mod rows;
pub mod table;
pub mod text_editor;
