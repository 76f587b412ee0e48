//! Flame graphs: what calls what, and how long that takes, as bars that hang below their callers.

use std::fmt::Write as _;

use kymo_text::markup;

/// Calls of a name with the same callers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Position of the caller, which comes before; `None` if there is none.
    pub caller: Option<usize>,
    /// What is called.
    pub name: String,
    /// How much it took without what it calls.
    pub own: u64,
    /// Of a comparison, the same in the first and in the second of what is compared: colours show the change.
    pub compared: Option<[u64; 2]>,
}

/// How a flame graph looks.
#[derive(Clone, Debug)]
pub struct FlameOptions {
    /// Above the bars.
    pub title: String,
    /// What an amount is called for readers.
    pub amount: fn(u64) -> String,
    /// Width in pixels.
    pub width: u32,
}

const ROW: f64 = 17.0;
const TOP: f64 = 34.0;
const SIDE: f64 = 8.0;
/// Width of a character of the texts.
const CHARACTER: f64 = 6.7;
/// Bars narrower than this are not drawn.
const NARROWEST: f64 = 0.1;
/// Bars are drawn down to this depth.
const DEEPEST: usize = 1000;

/// Shows bars whose name contains a text, and their share in total. Everything else works without scripts.
const SCRIPT: &str = "\
(()=>{const find=document.getElementById('find'),found=document.getElementById('found');\
const bars=[...document.querySelectorAll('g.bar')];find.style.visibility='visible';\
const ask=()=>{const text=prompt('Show calls whose name contains')??'';let sum=0,end=-1;\
for(const bar of bars){const box=bar.querySelector('rect'),is=text&&bar.dataset.name.includes(text);\
bar.style.opacity=text&&!is?0.25:1;const x=+box.getAttribute('x'),w=+box.getAttribute('width');\
if(is){bar.dataset.hit=1}else{delete bar.dataset.hit}}\
const hits=bars.filter(b=>b.dataset.hit).map(b=>b.querySelector('rect')).map(r=>[+r.getAttribute('x'),+r.getAttribute('width')]).sort((a,b)=>a[0]-b[0]);\
for(const[x,w]of hits){sum+=Math.max(0,x+w-Math.max(x,end));end=Math.max(end,x+w)}\
found.textContent=text?`${text}: ${hits.length} bars, ${(100*sum/WIDTH).toFixed(1)} %`:''};\
find.addEventListener('click',ask);\
find.addEventListener('keydown',e=>{if(e.key==='Enter')ask()})})()";

/// The colour of a name: the same everywhere, light enough for black texts.
fn colour(name: &str) -> String {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let hue = 15 + hash % 40;
    let lightness = 62 + hash / 64 % 18;
    format!("hsl({hue},85%,{lightness}%)")
}

/// The colour of a change of an amount: red for more, blue for less, the stronger the larger the share of the change is
/// in both together.
fn colour_of_change([before, after]: [u64; 2]) -> String {
    let all = before.saturating_add(after).max(1) as f64;
    let share = (after as f64 - before as f64) / all;
    // A third more or less is as strong as it gets.
    let strength = (share.abs() * 6.0).min(1.0);
    let (hue, lightness) = (if share > 0.0 { 4 } else { 214 }, 94.0 - 32.0 * strength);
    format!("hsl({hue},85%,{lightness:.0}%)")
}

/// What changed, for the title of a bar.
fn change_text([before, after]: [u64; 2], amount: fn(u64) -> String) -> String {
    let share = match before {
        0 => "only in the second".to_owned(),
        _ if after == 0 => "only in the first".to_owned(),
        _ => format!("{:+.1} %", (after as f64 / before as f64 - 1.0) * 100.0),
    };
    format!(
        "\n{} in the first, {} in the second: {share}",
        amount(before),
        amount(after)
    )
}

/// A flame graph as an SVG document. Bars are as wide as what they take with all that they call, widest first; titles of
/// bars say how much that is.
pub fn flame_svg(frames: &[Frame], options: &FlameOptions) -> String {
    let mut totals: Vec<u64> = frames.iter().map(|frame| frame.own).collect();
    let mut sides: Vec<Option<[u64; 2]>> = frames.iter().map(|frame| frame.compared).collect();
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); frames.len()];
    let mut roots = Vec::new();
    for (at, frame) in frames.iter().enumerate().rev() {
        match frame.caller.filter(|caller| *caller < at) {
            Some(caller) => {
                totals[caller] = totals[caller].saturating_add(totals[at]);
                if let (Some([a, b]), Some(of_caller)) = (sides[at], &mut sides[caller]) {
                    *of_caller = [
                        of_caller[0].saturating_add(a),
                        of_caller[1].saturating_add(b),
                    ];
                }
                below[caller].push(at);
            }
            None => roots.push(at),
        }
    }
    let all = roots
        .iter()
        .fold(0, |sum: u64, root| sum.saturating_add(totals[*root]));
    let inner = f64::from(options.width.max(100)) - 2.0 * SIDE;
    let scale = inner / all.max(1) as f64;
    let order = |list: &mut Vec<usize>| {
        list.sort_by(|a, b| (totals[*b], &frames[*a].name).cmp(&(totals[*a], &frames[*b].name)));
    };
    order(&mut roots);
    let (mut bars, mut deepest, mut left_out) = (String::new(), 0, 0);
    // Bars to draw, with their left edge and depth.
    let mut waiting: Vec<(usize, f64, usize)> = Vec::new();
    let push =
        |waiting: &mut Vec<(usize, f64, usize)>, list: &[usize], mut x: f64, depth: usize| {
            for &at in list {
                waiting.push((at, x, depth));
                x += totals[at] as f64 * scale;
            }
        };
    push(&mut waiting, &roots, SIDE, 0);
    while let Some((at, x, depth)) = waiting.pop() {
        let width = totals[at] as f64 * scale;
        if width < NARROWEST || depth >= DEEPEST {
            left_out += 1;
            continue;
        }
        deepest = deepest.max(depth + 1);
        let name = &frames[at].name;
        let share = 100.0 * totals[at] as f64 / all.max(1) as f64;
        let (shown, y) = (markup(name), TOP + depth as f64 * ROW);
        let _ = write!(
            bars,
            "<g class=\"bar\" data-name=\"{shown}\"><title>{shown}\n{}, {share:.2} %; without what it calls {}{}</title>\
             <rect x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" fill=\"{}\"/>",
            (options.amount)(totals[at]),
            (options.amount)(frames[at].own),
            sides[at].map_or_else(String::new, |sides| change_text(sides, options.amount)),
            (width - 0.3).max(NARROWEST),
            ROW - 1.0,
            sides[at].map_or_else(|| colour(name), colour_of_change)
        );
        let room = ((width - 6.0) / CHARACTER) as usize;
        if room >= 3 {
            let mut text: String = name.chars().take(room).collect();
            if name.chars().nth(room).is_some() {
                text.pop();
                text.push('…');
            }
            let _ = write!(
                bars,
                "<text x=\"{:.2}\" y=\"{}\">{}</text>",
                x + 3.0,
                y + 12.0,
                markup(&text)
            );
        }
        bars.push_str("</g>\n");
        order(&mut below[at]);
        push(&mut waiting, &below[at], x, depth + 1);
    }
    let width = options.width.max(100);
    let height = TOP + deepest.max(1) as f64 * ROW + 26.0;
    let note = match (all, left_out) {
        (0, _) => "nothing was measured".to_owned(),
        (_, 0) => String::new(),
        (_, count) => format!("{count} bars are too narrow or too deep to be drawn"),
    };
    let script = SCRIPT.replace("WIDTH", &format!("{inner}"));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"DejaVu Sans Mono,monospace\" font-size=\"11\">\n\
         <style>.bar:hover rect{{stroke:#000;stroke-width:1}}.bar text{{pointer-events:none}}\
         #find{{visibility:hidden;cursor:pointer}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{SIDE}\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{}</text>\n\
         <text id=\"find\" tabindex=\"0\" role=\"button\" x=\"{}\" y=\"20\" text-anchor=\"end\">Search</text>\n\
         {bars}<text x=\"{SIDE}\" y=\"{}\" fill=\"#555\">{note}</text>\n\
         <text id=\"found\" x=\"{}\" y=\"{}\" text-anchor=\"end\"></text>\n\
         <script><![CDATA[{script}]]></script>\n</svg>\n",
        markup(&options.title),
        f64::from(width) - SIDE,
        height - 9.0,
        f64::from(width) - SIDE,
        height - 9.0,
    )
}

/// Frames as folded stacks: a line for each with callers and name between semicolons, and what it took itself.
pub fn folded(frames: &[Frame]) -> String {
    let mut out = String::new();
    for frame in frames.iter().filter(|frame| frame.own > 0) {
        let mut names = vec![frame.name.as_str()];
        let mut caller = frame.caller;
        while let Some(at) = caller.filter(|_| names.len() < DEEPEST) {
            names.push(&frames[at].name);
            caller = frames[at].caller.filter(|next| *next < at);
        }
        for (place, name) in names.iter().rev().enumerate() {
            if place > 0 {
                out.push(';');
            }
            let plain = name.chars().map(|c| match c {
                ';' => ':',
                c if c.is_control() => ' ',
                c => c,
            });
            out.extend(plain);
        }
        let _ = writeln!(out, " {}", frame.own);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let frame = |caller, name: &str, own| Frame {
            caller,
            name: name.into(),
            own,
            compared: None,
        };
        vec![
            frame(None, "main", 10),
            frame(Some(0), "a;b", 30),
            frame(Some(0), "<script>alert(1)</script>", 50),
            frame(Some(1), "leaf", 10),
        ]
    }

    #[test]
    fn bars_are_as_wide_as_what_they_take() {
        let options = FlameOptions {
            title: "a & b".into(),
            amount: |amount| format!("{amount} ns"),
            width: 1016,
        };
        let svg = flame_svg(&frames(), &options);
        assert!(svg.contains("a &amp; b"));
        assert!(svg.contains("<title>main\n100 ns, 100.00 %; without what it calls 10 ns</title>"));
        // The widest comes first.
        assert!(
            svg.contains("<rect x=\"8.00\" y=\"51\" width=\"499.70\""),
            "{svg}"
        );
        assert!(
            svg.contains("<rect x=\"508.00\" y=\"51\" width=\"399.70\""),
            "{svg}"
        );
        assert_eq!(svg.matches("<script").count(), 1);
        assert_eq!(svg.matches("class=\"bar\"").count(), 4);
        assert!(flame_svg(&[], &options).contains("nothing was measured"));
    }

    #[test]
    fn comparisons_are_coloured_by_what_changed() {
        let frame = |caller, name: &str, [before, after]: [u64; 2]| Frame {
            caller,
            name: name.into(),
            own: before + after,
            compared: Some([before, after]),
        };
        let frames = [
            frame(None, "main", [0, 0]),
            frame(Some(0), "same", [50, 50]),
            frame(Some(0), "slower", [20, 40]),
            frame(Some(0), "gone", [10, 0]),
        ];
        let options = FlameOptions {
            title: String::new(),
            amount: |amount| format!("{amount} ns"),
            width: 1016,
        };
        let svg = flame_svg(&frames, &options);
        assert!(
            svg.contains("80 ns in the first, 90 ns in the second: +12.5 %"),
            "{svg}"
        );
        assert!(svg.contains("20 ns in the first, 40 ns in the second: +100.0 %"));
        assert!(svg.contains("10 ns in the first, 0 ns in the second: only in the first"));
        for (colour, count) in [
            ("hsl(214,85%,94%)", 1),
            ("hsl(4,85%,62%)", 1),
            ("hsl(214,85%,62%)", 1),
        ] {
            assert_eq!(svg.matches(colour).count(), count, "{colour} {svg}");
        }
    }

    #[test]
    fn stacks_are_folded() {
        assert_eq!(
            folded(&frames()),
            "main 10\nmain;a:b 30\nmain;<script>alert(1)</script> 50\nmain;a:b;leaf 10\n"
        );
    }
}
