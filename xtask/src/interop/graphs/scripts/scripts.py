"""Takes the command lines of graphs out of what draws graphs in Debian's packages.

The packages are downloaded and unpacked, not installed, and their own code is run: with a module RRDs that
writes down what it is asked to draw. Then databases are made that have the sources which the lines name.

    scripts.py DIRECTORY MOST PROGRAM...

prints a line of JSON for each command line, at most so many, and on standard error what was left out and why.
"""

import base64
import gzip
import hashlib
import json
import math
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as tree

HERE = pathlib.Path(__file__).resolve().parent
# The packages of each program.
PACKAGES = {
    "munin": ["munin", "munin-common", "munin-plugins-core", "liblog-log4perl-perl"],
    "cacti": ["cacti", "php8.2-cli", "php8.2-common", "php8.2-mbstring"],
    "smokeping": [
        "smokeping", "libconfig-grammar-perl", "libcgi-pm-perl", "libcgi-fast-perl", "libfcgi-perl",
        "libhtml-parser-perl", "liburi-perl", "libdigest-hmac-perl", "libsnmp-session-perl",
    ],
    "collectd": ["collectd-core", "libconfig-general-perl", "libcgi-pm-perl", "libhtml-parser-perl", "liburi-perl"],
    "php-collection": ["collectd-core", "php8.2-cli", "php8.2-common"],
    "mailgraph": ["mailgraph"],
    "manual": ["rrdtool"],
}
# Plugins of Munin that describe graphs wherever they run.
PLUGINS = """cpu memory load df if_eth0 if_err_eth0 interrupts processes swap vmstat open_files entropy forks
    users uptime netstat threads proc_pri irqstats diskstats fw_packets tcp""".split()
STEP = 300
SPAN = 400 * 86400


def left_out(what, why):
    print(f"left out: {what}: {why}", file=sys.stderr)


def run(words, **options):
    """The output of a program; what it writes on standard error is shown if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, **options)
    if done.returncode or done.stderr:
        left_out(pathlib.Path(words[0]).name, (done.stderr or done.stdout).strip()[-400:])
    return done.stdout


def is_installed(package):
    query = ["dpkg-query", "-W", "-f", "${Status}", package]
    return subprocess.run(query, capture_output=True, text=True).stdout.endswith(" installed")


class Place:
    """Where everything of a run is."""

    def __init__(self, base):
        self.base = pathlib.Path(base).resolve()
        self.root = self.base / "root"
        self.record = self.base / "record"
        self.unpacked = set()

    def unpack(self, package):
        if package in self.unpacked or package.endswith("-perl") and is_installed(package):
            return
        folder = self.base / "packages"
        folder.mkdir(exist_ok=True)
        if not list(folder.glob(f"{package}_*.deb")):
            done = subprocess.run(["apt-get", "download", "-q", package], cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise OSError(f"apt-get download {package}: {done.stderr.strip()[-200:]}")
        for file in folder.glob(f"{package}_*.deb"):
            subprocess.run(["dpkg-deb", "-x", file, self.root], check=True)
        self.unpacked.add(package)

    def path(self, name):
        return self.root / name

    def databases(self, program):
        folder = self.base / "databases" / program
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def perl(self, program, words, **more):
        """Runs a program in Perl, and returns the lines that it had drawn."""
        self.record.write_text("")
        environment = dict(
            os.environ,
            PERL5LIB=":".join(map(str, [HERE, self.path("usr/share/perl5"), *self.root.glob("usr/lib/*/perl5/*")])),
            RECORD=str(self.record),
            PROGRAM=program,
            **more,
        )
        # SmokePing ends if this decides how numbers are written.
        if program == "smokeping":
            environment.pop("LC_ALL", None)
        # CGI scripts print pictures.
        done = subprocess.run(["perl", *map(str, words)], env=environment, capture_output=True, timeout=120)
        errors = done.stderr.decode(errors="replace")
        if done.returncode or "Can't locate" in errors:
            left_out(program, errors.strip()[-400:])
        return [json.loads(line) for line in self.record.read_text().splitlines()]

    def php(self, words):
        program = self.path("usr/bin/php8.2")
        modules = sorted(self.path("usr/lib/php").glob("*/mbstring.so"))
        load = [word for module in modules for word in ("-d", f"extension={module}")]
        return run([str(program), "-n", *load, *map(str, words)])


def munin(place):
    """Munin's grapher over the configurations that its plugins print."""
    library, databases = place.path("usr/share/munin"), place.databases("munin")
    state, lines = place.base / "munin", []
    state.mkdir(exist_ok=True)
    group, host = "example", "host.example"
    environment = dict(
        os.environ,
        MUNIN_LIBDIR=str(library), MUNIN_PLUGSTATE=str(state), MUNIN_CAP_MULTIGRAPH="1", LC_ALL="C",
        PERL5LIB=str(place.path("usr/share/perl5")),
    )
    # Shell plugins with one name for all that they can watch.
    wild = {"if_eth0": "if_", "if_err_eth0": "if_err_"}
    text, orders, ordered = ["version 2.0.73"], {}, set()
    for plugin in PLUGINS:
        source = library / "plugins" / wild.get(plugin, plugin)
        named = state / plugin
        if not source.exists():
            continue
        shutil.copy(source, named)
        done = subprocess.run([named, "config"], env=environment, capture_output=True, text=True, timeout=20)
        service = plugin
        for line in done.stdout.splitlines():
            if line.startswith("multigraph "):
                service = line.split()[1].replace(".", "_")
            elif match := re.match(r"([\w.-]+)\s+(.*)$", line):
                text.append(f"{group};{host}:{service}.{match[1]} {match[2]}")
                field, _, attribute = match[1].partition(".")
                if attribute == "label":
                    orders.setdefault(service, []).append(field)
                elif field == "graph_order":
                    ordered.add(service)
    # What fetches configurations adds the order in which a plugin names its fields.
    for service in orders.keys() - ordered:
        text.append(f"{group};{host}:{service}.graph_order {' '.join(orders[service])}")
    (state / "datafile").write_text("\n".join(text) + "\n")
    (state / "munin.conf").write_text(
        f"dbdir {state}\nhtmldir {state}/html\nlogdir {state}\nrundir {state}\nmax_graph_jobs 0\n"
        f"[{host}]\n address 127.0.0.1\n"
    )
    driver = HERE / "munin.pl"
    found = place.perl("munin", [driver, state], LC_ALL="C")
    for line in found:
        line["words"] = [word.replace(f"{state}/{group}/", f"{databases}/") for word in line["words"]]
    return found


def smokeping(place):
    """All pages of SmokePing for a few hosts."""
    state, databases = place.base / "smokeping", place.databases("smokeping")
    for folder in ("images", "dyn", "pages"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    found = place.perl("smokeping", [HERE / "smokeping.pl", place.root, state, databases])
    return found


def collectd(place):
    examples = place.path("usr/share/doc/collectd-core/examples")
    return place.perl("collection", [HERE / "collectd.pl", examples, place.databases("collectd")])


def shell(text, program):
    """The words of a command line of a shell, without rrdtool, graph, and the file."""
    words = shlex.split(text.replace("\\\n", " "))
    at = words.index("graph")
    return {"program": program, "words": words[at + 2:]}


def php_collection(place):
    folder = place.path("usr/share/doc/collectd-core/examples/php-collection")
    text = place.php([HERE / "collectd.php", folder, place.databases("php-collection")])
    return [shell(line, "php-collection") for line in text.splitlines() if "rrdtool" in line]


def mailgraph(place):
    databases = place.databases("mailgraph")
    script = place.path("usr/share/mailgraph/mailgraph.cgi").read_text(errors="replace")
    copy = place.base / "mailgraph.cgi"
    copy.write_text(script.replace("/var/lib/mailgraph", str(databases)))
    lines = []
    for number in range(4):
        for kind in "neg":
            lines += place.perl("mailgraph", [copy], QUERY_STRING=f"{number}-{kind}", REQUEST_URI="/cgi/mailgraph.cgi")
    return lines


def cacti(place):
    """The graph templates that Cacti installs, through its own code."""
    site, databases = place.path("usr/share/cacti/site"), place.databases("cacti")
    graphs, tables = [], {"cdefs": {}, "vdefs": {}, "cdef_items": {}, "vdef_items": {}}
    for file in sorted((site / "install/templates").glob("*.xml.gz")):
        package = tree.fromstring(gzip.decompress(file.read_bytes()))
        for part in package.iter("file"):
            if part.findtext("type") == "template":
                graphs += templates(tree.fromstring(base64.b64decode(part.findtext("data"))), tables)
    seen, chosen = set(), []
    for graph in graphs:
        key = json.dumps([graph["graph"]["title_cache"], len(graph["items"])])
        if key not in seen:
            seen.add(key)
            chosen.append(graph)
    data = place.base / "cacti.json"
    data.write_text(json.dumps({"graphs": chosen, **tables}))
    text = place.php([HERE / "cacti.php", site, data, databases])
    return [shell(json.loads(line), "cacti") for line in text.splitlines() if line.startswith('"')]


def templates(root, tables):
    """The graphs of one file of templates as rows of Cacti's tables."""
    texts, names = {}, {}
    for node in root:
        kind = node.tag[5:7]
        if kind == "06":
            texts[node.tag] = node.findtext("gprint_text") or ""
        elif kind in ("05", "18"):
            table = "cdef" if kind == "05" else "vdef"
            items = []
            for item in node.find("items"):
                row = {"id": item.tag, "type": item.findtext("type"), "value": item.findtext("value")}
                tables[f"{table}_items"][item.tag] = row
                items.append((int(item.findtext("sequence") or 0), row))
            tables[f"{table}s"][node.tag] = [row for _, row in sorted(items, key=lambda pair: pair[0])]
        elif kind == "01":
            for item in node.find("items") if node.find("items") is not None else []:
                names[item.tag] = (node.tag, item.findtext("data_source_name") or "value")
    graphs = []
    for node in root:
        if node.tag[5:7] != "00" or node.find("graph") is None:
            continue
        graph = {part.tag: part.text or "" for part in node.find("graph") if not part.tag.startswith("t_")}
        graph |= {"local_graph_id": 1, "host_id": 1, "snmp_query_id": 1, "snmp_index": "1"}
        graph["title_cache"] = graph.pop("title", "").replace("|host_description|", "Router & co")
        items = []
        for number, item in enumerate(node.find("items")):
            part = {field.tag: field.text or "" for field in item}
            database, source = names.get(part["task_item_id"], (None, ""))
            colour = part["color_id"]
            items.append(part | {
                "graph_templates_item_id": number + 1,
                "hex": "" if colour == "0" else colour,
                "gprint_text": texts.get(part["gprint_id"], "%8.2lf %s"),
                "snmp_query_id": 1, "snmp_index": "1",
                "data_template_rrd_id": part["task_item_id"] if database else "",
                "local_data_id": int(hashlib.md5(database.encode()).hexdigest()[:6], 16) if database else 0,
                "rrd_minimum": "0", "rrd_maximum": "100",
                "data_source_name": source,
                "local_data_template_rrd_id": part["task_item_id"],
            })
        graphs.append({"graph": graph, "items": items})
    return graphs


ELEMENT = re.compile(r"(DEF|CDEF|VDEF|LINE[\d.]*|AREA|STACK|TICK|[HV]RULE|G?PRINT|COMMENT|SHIFT|TEXTALIGN):")


def manual(place):
    """The examples of rrdtool's manual pages: the blocks of a section are one graph, and each expression is one."""
    lines, databases = [], place.databases("manual")
    for page in ("rrdgraph", "rrdgraph_data", "rrdgraph_rpn", "rrdgraph_graph", "rrdgraph_examples"):
        text = gzip.decompress(place.path(f"usr/share/man/man1/{page}.1.gz").read_bytes()).decode()
        text = text.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\").replace("\\*(C`", "\x00").replace("\\*(C'", "\x00")
        examples = []
        for section in re.split(r"^\.(?:SS|SH|IP) ", text, flags=re.M):
            blocks = re.findall(r"^\.Vb \d+\n(.*?)^\.Ve", section, re.M | re.S)
            try:
                words = shlex.split("\n".join(blocks).replace("\\\n", " "))
            except ValueError:
                # No command line.
                continue
            if "graph" in words:
                words = words[words.index("graph") + 2:]
            # Alternatives are in a block of their own.
            if any(ELEMENT.match(word) for word in words) and not any("<" in word for word in words):
                examples.append(words)
        examples += [[word] for word in re.findall(r"\x00([CV]DEF:\w+=[^\x00<\s]+)\x00", text)]
        lines += [{"program": "manual", "words": completed(words, databases)} for words in examples]
    return lines


def completed(words, databases):
    """An example with definitions of what it leaves out, and a line for what it only defines."""
    kept, is_value = [], False
    for word in words:
        if ELEMENT.match(word) or word.startswith("-") or is_value:
            kept.append(re.sub(r"^(DEF:\w+=)([^:]*/)?", rf"\1{databases}/", word))
        # What is neither an element nor an option or its value is a remark.
        is_value = word.startswith("-") and "=" not in word
    words = kept
    known, needed = set(), []
    for word in words:
        kind, _, rest = word.partition(":")
        if kind == "DEF":
            known.add(rest.partition("=")[0])
        elif kind in ("CDEF", "VDEF"):
            name, _, expression = rest.partition("=")
            needed += [part for part in expression.split(",") if re.fullmatch(r"[a-zXY]\w*", part) and part not in known]
            known.add(name)
        elif ELEMENT.match(word):
            value = re.match(r"\w+", rest)
            if value and kind not in ("COMMENT", "TEXTALIGN") and not value[0][0].isdigit() and value[0] not in known:
                needed.append(value[0])
    given = [f"DEF:{name}={databases}/given.rrd:{name}:AVERAGE" for name in dict.fromkeys(needed)]
    at = next((place for place, word in enumerate(words) if ELEMENT.match(word)), len(words))
    words[at:at] = given
    if not any(re.match(r"LINE|AREA|STACK|TICK", word) for word in words):
        for word in list(words):
            if match := re.match(r"(CDEF|VDEF|DEF):(\w+)=", word):
                words.append(f"LINE1:{match[2]}#0000FF:{match[2]}")
    return words


def sources(lines):
    """The data sources of each database that lines name, and the functions of archives."""
    found = {}
    for line in lines:
        for word in line["words"]:
            if match := re.match(r"DEF:[^=:]+=((?:[^:\\]|\\.)+):([^:]+):", word):
                names, functions = found.setdefault(match[1].replace("\\:", ":"), (set(), set()))
                names.add(match[2])
                functions.add(word[match.end():].partition(":")[0])
    return found


class Maker:
    """Makes databases with one process of rrdtool."""

    def __init__(self, now):
        self.end = now - now % STEP
        self.rrdtool = subprocess.Popen(["rrdtool", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, *words):
        self.rrdtool.stdin.write(" ".join(map(str, words)) + "\n")
        self.rrdtool.stdin.flush()
        answer = self.rrdtool.stdout.readline()
        if not answer.startswith("OK"):
            raise OSError(f"rrdtool {' '.join(map(str, words[:2]))}: {answer.strip()}")

    def make(self, path, names, functions):
        """A database of a year: a value a day, then every two hours, then each step, with gaps."""
        names, path, start = sorted(names), pathlib.Path(path), self.end - SPAN
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        rates = [f"DS:{name}:GAUGE:100000:U:U" for name in names]
        archives = [
            f"RRA:{function}:0.5:{steps}:{rows}"
            for function in ("AVERAGE", "MIN", "MAX", "LAST")
            for steps, rows in ((1, 600), (6, 700), (24, 775), (288, 797))
        ]
        if "HWPREDICT" in functions:
            archives.append("RRA:HWPREDICT:1440:0.1:0.0035:288")
        self.say("create", path, "--start", start - 1, "--step", STEP, *rates, *archives)
        by = random.Random(path.name)
        size = {name: 10 ** by.choice([-3, 0, 0, 1, 2, 3, 6, 8]) for name in names}
        times = [*range(start, self.end - 7 * 86400, 86400), *range(self.end - 7 * 86400, self.end - 86400, 7200)]
        times += range(self.end - 86400, self.end, STEP)
        updates = []
        for at in times:
            unknown = by.random() < 0.02
            day = 1 + 0.5 * math.sin(at / 86400 * 2 * math.pi)
            values = []
            for name in names:
                if name == "loss":
                    value = by.choice([0, 0, 0, 0, 0, 1, 3])
                elif name == "median" or name.startswith("ping"):
                    value = 0.02 + 0.01 * day + 0.001 * by.random() + 0.0005 * int(name[4:] if name[4:].isdigit() else 10)
                elif name == "uptime":
                    value = at - start
                else:
                    value = size[name] * day * (0.5 + by.random())
                values.append("U" if unknown else f"{value:.10g}")
            updates.append(f"{at}:{':'.join(values)}")
        self.say("update", path, *updates)


def fixed(words, now):
    """A line of which the second in which it runs changes nothing."""
    words = list(words)
    if not any(word in ("-e", "--end") or word.startswith("--end=") for word in words):
        words = [f"--end={now}", *words]
    for at, word in enumerate(words):
        begin = words[at + 1] if word in ("-s", "--start") else word.removeprefix("--start=") if "--start=" in word else ""
        if re.fullmatch(r"-\d+[a-z]*", begin):
            if word.startswith("--start="):
                words[at] = f"--start=end{begin}"
            else:
                words[at + 1] = f"end{begin}"
        if word == "now" and at and words[at - 1] in ("-e", "--end"):
            words[at] = str(now)
        if match := re.fullmatch(r"--end=\+(\d+)days", word):
            words[at] = f"--end={now + 86400 * int(match[1])}"
        # A file that is not there is drawn.
        if word in ("--lazy", "-z"):
            words[at] = "--slope-mode" if "--slope-mode" not in words else "--interlaced"
    return words


def main():
    place, most, wanted = Place(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(PACKAGES)
    place.root.mkdir(parents=True, exist_ok=True)
    lines, now = [], int(time.time())
    programs = {
        "munin": munin, "cacti": cacti, "smokeping": smokeping, "collectd": collectd,
        "php-collection": php_collection, "mailgraph": mailgraph, "manual": manual,
    }
    for program in wanted:
        try:
            for package in PACKAGES[program]:
                place.unpack(package)
            found = programs[program](place)
        except (OSError, subprocess.SubprocessError, tree.ParseError, KeyError, ValueError) as error:
            left_out(program, f"{type(error).__name__}: {error}")
            continue
        print(f"{program}: {len(found)} command lines", file=sys.stderr)
        lines += found
    seen, different = set(), []
    for line in lines:
        line["words"] = fixed(line["words"], now)
        if (key := json.dumps(line["words"])) not in seen:
            seen.add(key)
            different.append(line)
    if len(different) > most:
        # Of all programs alike.
        different = [different[place * len(different) // most] for place in range(most)]
    maker = Maker(now)
    for path, (names, functions) in sources(different).items():
        maker.make(path, names, functions)
    for line in different:
        print(json.dumps({"folder": str(place.base), **line}))


if __name__ == "__main__":
    main()
