fn main() {
    use kymo_draw::*;
    let mut p = Picture::new(300, 100);
    let a: Vec<String> = std::env::args().collect();
    p.items.push(Item::Fill {
        path: Path::rectangle(0., 0., 300., 100.),
        paint: Paint::Solid(Colour::WHITE),
    });
    p.items.push(Item::Fill {
        path: Path::rectangle(100., 10., 200., 90.),
        paint: Paint::Linear {
            from: Point::new(0., 10.),
            to: Point::new(0., 90.),
            stops: vec![
                (0., Colour::from_rgba(0xff0000ff)),
                (1., Colour::from_rgba(0x0000ff00)),
            ],
        },
    });
    p.items.push(Item::Stroke {
        path: Path::polyline([
            Point::new(10., 50.),
            Point::new(80., 20.),
            Point::new(90., 80.),
        ]),
        colour: Colour::from_rgba(0x00800080),
        style: Stroke::round(5.),
    });
    let mut t = Text::new(
        a[1].clone(),
        150.,
        50.,
        Font::new(a[2].parse().unwrap()),
        Colour::BLACK,
    );
    t.markup = true;
    t.horizontal = HorizontalAlign::Center;
    t.vertical = VerticalAlign::Center;
    p.items.push(Item::Text(t.clone()));
    t.angle = 90.;
    t.origin.x = 20.;
    p.items.push(Item::Text(t));
    let f = Fonts::new();
    let o = RenderOptions::default();
    for (n, r) in [
        ("svg", svg(&p, &f, &o)),
        ("png", png(&p, &f, &o)),
        ("pdf", pdf(&p, &f, &o)),
        ("eps", eps(&p, &f, &o)),
    ] {
        std::fs::write(format!("/tmp/c/probe.{n}"), r.unwrap()).unwrap();
    }
    println!("{:?}", f.take_warnings());
}
