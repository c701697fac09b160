//! Draws what egui tessellated into pixels, on the processor alone, so that images are the same on every machine.
//!
//! Triangles are filled by edge functions with the top-left rule, textures are read between four texels, and colours are blended
//! premultiplied in gamma space, as egui's own renderers do it.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use egui::{
    Color32, Context, FullOutput, TextureId, TexturesDelta,
    epaint::{ImageData, Mesh, Primitive, Vertex, textures::TextureFilter},
};
use egui_kittest::TestRenderer;
use image::{Rgba, RgbaImage};

/// The textures that egui handed out, shared between the harness and the one who draws.
#[derive(Clone, Debug, Default)]
pub struct Renderer {
    textures: Rc<RefCell<HashMap<TextureId, Texture>>>,
}

#[derive(Debug)]
struct Texture {
    width: usize,
    height: usize,
    pixels: Vec<Color32>,
    filter: TextureFilter,
}

type Pixel = [f32; 4];

impl TestRenderer for Renderer {
    fn handle_delta(&mut self, delta: &mut TexturesDelta) {
        let mut textures = self.textures.borrow_mut();
        for (id, patches) in delta.set.drain() {
            for patch in patches {
                let ImageData::Color(image) = &patch.image;
                let [width, height] = image.size;
                match (patch.pos, textures.get_mut(&id)) {
                    (Some([x, y]), Some(texture)) => {
                        for row in 0..height {
                            let at = (y + row) * texture.width + x;
                            texture.pixels[at..at + width]
                                .copy_from_slice(&image.pixels[row * width..][..width]);
                        }
                    }
                    _ => {
                        let texture = Texture {
                            width,
                            height,
                            pixels: image.pixels.clone(),
                            filter: patch.options.magnification,
                        };
                        textures.insert(id, texture);
                    }
                }
            }
        }
        for id in delta.free.drain() {
            textures.remove(&id);
        }
    }
}

impl Renderer {
    /// Draws the last frame.
    pub fn draw(&self, context: &Context, output: &FullOutput) -> RgbaImage {
        let scale = context.pixels_per_point();
        let size = context.content_rect().size() * scale;
        let mut canvas = Canvas::new(size.x.round() as usize, size.y.round() as usize);
        let textures = self.textures.borrow();
        for clipped in context.tessellate(output.shapes.clone(), scale) {
            let Primitive::Mesh(mesh) = clipped.primitive else {
                continue;
            };
            let Some(texture) = textures.get(&mesh.texture_id) else {
                continue;
            };
            canvas.mesh(&mesh, texture, clipped.clip_rect * scale, scale);
        }
        canvas.image()
    }
}

impl Texture {
    fn texel(&self, x: i64, y: i64) -> Pixel {
        let x = x.clamp(0, self.width as i64 - 1) as usize;
        let y = y.clamp(0, self.height as i64 - 1) as usize;
        self.pixels[y * self.width + x].to_array().map(f32::from)
    }

    fn sample(&self, u: f32, v: f32) -> Pixel {
        let (x, y) = (u * self.width as f32 - 0.5, v * self.height as f32 - 0.5);
        if self.filter == TextureFilter::Nearest {
            return self.texel((x + 0.5).floor() as i64, (y + 0.5).floor() as i64);
        }
        let (left, top) = (x.floor(), y.floor());
        let (right_share, bottom_share) = (x - left, y - top);
        let (left, top) = (left as i64, top as i64);
        let upper = mix(
            self.texel(left, top),
            self.texel(left + 1, top),
            right_share,
        );
        let lower = mix(
            self.texel(left, top + 1),
            self.texel(left + 1, top + 1),
            right_share,
        );
        mix(upper, lower, bottom_share)
    }
}

fn mix(a: Pixel, b: Pixel, share: f32) -> Pixel {
    std::array::from_fn(|channel| a[channel] * (1.0 - share) + b[channel] * share)
}

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Pixel>,
}

/// A point in pixels, in double precision, so that an edge shared by two triangles is the same edge in both.
type Point = [f64; 2];

impl Canvas {
    fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            pixels: vec![[0.0; 4]; width * height],
        }
    }

    fn mesh(&mut self, mesh: &Mesh, texture: &Texture, clip: egui::Rect, scale: f32) {
        for triangle in mesh.indices.chunks_exact(3) {
            let corners = [0, 1, 2].map(|corner| &mesh.vertices[triangle[corner] as usize]);
            self.triangle(corners, texture, clip, scale);
        }
    }

    fn triangle(
        &mut self,
        mut corners: [&Vertex; 3],
        texture: &Texture,
        clip: egui::Rect,
        scale: f32,
    ) {
        let place = |vertex: &Vertex| {
            [
                f64::from(vertex.pos.x * scale),
                f64::from(vertex.pos.y * scale),
            ]
        };
        let mut area = edge(place(corners[0]), place(corners[1]), place(corners[2]));
        if area == 0.0 {
            return;
        }
        if area < 0.0 {
            corners.swap(0, 2);
            area = -area;
        }
        let points = corners.map(place);
        let sides = [
            (points[1], points[2]),
            (points[2], points[0]),
            (points[0], points[1]),
        ];
        let (columns, rows) = self.bounds(&points, clip);
        for y in rows {
            for x in columns.clone() {
                let middle = [x as f64 + 0.5, y as f64 + 0.5];
                let weights = sides.map(|(from, to)| edge(from, to, middle));
                let inside = (0..3).all(|side| {
                    weights[side] > 0.0 || weights[side] == 0.0 && owns_edge(sides[side])
                });
                if inside {
                    let weights = weights.map(|weight| (weight / area) as f32);
                    self.blend(x, y, shade(corners, weights, texture));
                }
            }
        }
    }

    /// Pixels that a triangle may touch.
    fn bounds(
        &self,
        points: &[Point; 3],
        clip: egui::Rect,
    ) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let range = |axis: usize, from: f32, until: f32, size: usize| {
            let least = points
                .iter()
                .map(|point| point[axis])
                .fold(f64::MAX, f64::min);
            let most = points
                .iter()
                .map(|point| point[axis])
                .fold(f64::MIN, f64::max);
            let start = least.floor().max(f64::from(from.round())).max(0.0) as usize;
            let end = most.ceil().min(f64::from(until.round())).max(0.0) as usize;
            start..end.min(size)
        };
        (
            range(0, clip.min.x, clip.max.x, self.width),
            range(1, clip.min.y, clip.max.y, self.height),
        )
    }

    fn blend(&mut self, x: usize, y: usize, source: Pixel) {
        let target = &mut self.pixels[y * self.width + x];
        let rest = 1.0 - source[3] / 255.0;
        for channel in 0..4 {
            target[channel] = source[channel] + target[channel] * rest;
        }
    }

    fn image(&self) -> RgbaImage {
        RgbaImage::from_fn(self.width as u32, self.height as u32, |x, y| {
            let pixel = self.pixels[y as usize * self.width + x as usize];
            Rgba(pixel.map(|channel| channel.round().clamp(0.0, 255.0) as u8))
        })
    }
}

/// Twice the area of the triangle, positive when the third point lies on the left.
fn edge(a: Point, b: Point, c: Point) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// The top-left rule: of two triangles at an edge exactly one owns its pixels.
fn owns_edge((a, b): (Point, Point)) -> bool {
    (a[1] == b[1] && b[0] > a[0]) || b[1] < a[1]
}

fn shade(corners: [&Vertex; 3], weights: [f32; 3], texture: &Texture) -> Pixel {
    let weigh = |value: fn(&Vertex) -> f32| {
        (0..3)
            .map(|corner| value(corners[corner]) * weights[corner])
            .sum::<f32>()
    };
    let texel = texture.sample(weigh(|vertex| vertex.uv.x), weigh(|vertex| vertex.uv.y));
    let colours = corners.map(|vertex| vertex.color.to_array().map(f32::from));
    std::array::from_fn(|channel| {
        let colour: f32 = (0..3)
            .map(|corner| colours[corner][channel] * weights[corner])
            .sum();
        colour * texel[channel] / 255.0
    })
}
