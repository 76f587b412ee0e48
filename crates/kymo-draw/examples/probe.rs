fn main(){ use kymo_draw::*; let mut p=Picture::new(10,10); let a:Vec<String>=std::env::args().collect();
 p.items.push(Item::Text(Text::new(a[1].clone(),0.,0.,Font::new(a[2].parse().unwrap()),Colour::BLACK)));
 println!("{}",String::from_utf8(svg(&p,&Fonts::new(),&RenderOptions::default()).unwrap()).unwrap()); }
