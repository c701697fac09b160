//! Pictures of widgets in both themes. They are small on purpose: what they show is one widget each.

use std::cell::RefCell;

use dead_letter_office::{
    theme,
    widgets::{
        diff_view::{Diff, DiffView},
        figure::figure_ui,
        hex_view::HexView,
        json_tree::JsonTree,
        parts::{self, Tone},
        table::{Cell, Column, Fold, Picked, RowContent, Shape, Table},
        text_editor::{Mark, text_editor},
    },
};
use dlo_core::Figure;
use dlo_desktop_tests::snapshot::check;

#[test]
fn buttons_chips_and_badges() {
    check("parts", [380.0, 150.0], |ui| {
        ui.horizontal(|ui| {
            parts::primary_button(ui, "Replay 401…", None);
            parts::button(ui, "Edit…", None);
            parts::danger_button(ui, "Discard 2…", None);
            parts::button(ui, "Export…", Some("Select messages first."));
        });
        ui.horizontal(|ui| {
            parts::badge(ui, "PRODUCTION", Tone::Danger);
            parts::badge(ui, "READ-ONLY", Tone::Accent);
            parts::chip(ui, "gzip", Tone::Accent);
            parts::chip(ui, "transient", Tone::Warning);
            parts::chip(ui, "settled", Tone::Fine);
        });
        parts::callout(ui, Tone::Warning, "Looking counts one delivery of 20.");
    });
}

#[test]
fn figures_look_as_sure_as_they_are() {
    check("figures", [240.0, 40.0], |ui| {
        ui.horizontal(|ui| {
            for figure in [
                Figure::exact(1243),
                Figure::about(1200),
                Figure::at_least(3),
                Figure::at_most(40),
                Figure::unknown(),
            ] {
                figure_ui(ui, figure, "messages");
            }
        });
    });
}

#[test]
fn the_table_with_a_group_and_rows() {
    check("table", [420.0, 150.0], |ui| {
        let colours = theme::colours(ui);
        let columns = [
            Column::right("#", 50.0),
            Column::left("key", 90.0),
            Column::rest("payload"),
        ];
        Table::default().show(ui, "Messages", &columns, 4, |line| match line {
            0 => RowContent {
                cells: vec![
                    Cell::bold("401   timeout db-3", colours.strong),
                    Cell::new("transient", colours.accent),
                ],
                name: "Group".to_owned(),
                ground: Some(colours.panel),
                state: Picked::No,
                shape: Shape::Band(Fold::Open),
            },
            line => RowContent {
                cells: vec![
                    Cell::mono(line.to_string(), colours.weak),
                    Cell::mono(format!("order-{line}"), colours.text),
                    Cell::mono(
                        r#"{"id":1,"items":[{"sku":"A-1","price":12.30}]}"#,
                        colours.text,
                    ),
                ],
                name: format!("Message {line}"),
                ground: None,
                state: if line == 2 { Picked::Yes } else { Picked::No },
                shape: Shape::Cells,
            },
        });
    });
}

#[test]
fn the_tree_shows_kinds_of_values() {
    check("tree", [320.0, 190.0], |ui| {
        let json = r#"{"id":202201180000000014,"name":"Ünï","paid":null,"items":[{"sku":"A-1"}]}"#;
        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        JsonTree::default().show(ui, "Payload", &value, 1);
    });
}

#[test]
fn bytes_in_hexadecimal() {
    check("hex", [560.0, 80.0], |ui| {
        let bytes: Vec<u8> = (0..48).map(|byte| byte * 5).collect();
        HexView::default().show(ui, "Bytes", &bytes);
    });
}

#[test]
fn a_difference_line_by_line() {
    check("diff", [320.0, 130.0], |ui| {
        let before = "{\n  \"id\": 1,\n  \"price\": null,\n  \"x\": 1\n}\n";
        let after = "{\n  \"id\": 1,\n  \"price\": 12.30,\n  \"x\": 1\n}\n";
        DiffView::default().show(ui, "Difference", &Diff::new(before, after), 120.0);
    });
}

#[test]
fn the_editor_marks_the_line_that_is_wrong() {
    thread_local!(static TEXT: RefCell<String> = RefCell::new("{\n  \"id\": 1,,\n}\n".to_owned()));
    check("editor", [320.0, 110.0], |ui| {
        TEXT.with_borrow_mut(|text| {
            let mark = Mark {
                line: 2,
                text: "a value is missing".to_owned(),
            };
            text_editor(ui, "Body", text, &[mark], 90.0);
        });
    });
}
