"""Kills a daemon again and again while all protocols bring samples, and looks whether what was acknowledged is there.

usage: check_kills.py KYMO DIRECTORY KILLS SEED

Each sender has series of its own, and its own clock, which moves on by a second with each sample: so each sample is a
row of its database, and all of them can be compared. Requests that were not answered before the daemon was killed
may be there or not; they are sent again, as senders do. Lines of Graphite, StatsD and datagrams are load: nobody
acknowledges them.
"""

import http.client
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

KYMO, DIRECTORY, KILLS, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
random.seed(SEED)
SERIES = 4
MOST = 190_000
START = int(time.time()) // 3600 * 3600 - 200_000
os.chdir(DIRECTORY)
os.makedirs("data", exist_ok=True)
CONFIG = """
data = "data"
[write]
timeout = 1
jitter = 1
flush = 5
[journal]
directory = "journal"
[rrdcached]
listen = "unix:r.sock"
[collectd.unixsock]
listen = "unix:c.sock"
[collectd.rrd]
step = 1
rows = 200000
timespans = [200000]
[influx]
listen = "unix:i.sock"
[remote-write]
listen = "unix:w.sock"
[otlp]
listen = "unix:o.sock"
[graphite]
listen = ["unix:g.sock", "unixgram:gd.sock"]
[statsd]
listen = ["unixgram:s.sock"]
interval = 1
[metrics]
listen = "unix:m.sock"
[[storage]]
archives = "1s:200000s"
heartbeat = 200000
functions = ["LAST"]
"""
with open("serve.toml", "w") as file:
    file.write(CONFIG)

stop = threading.Event()


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = connect(self.path)


def connect(path, kind=socket.SOCK_STREAM):
    connection = socket.socket(socket.AF_UNIX, kind)
    connection.settimeout(10)
    connection.connect(path)
    return connection


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def snappy(data):
    """Without compression: literals of up to 60 bytes."""
    out = varint(len(data))
    for at in range(0, len(data), 60):
        piece = data[at:at + 60]
        out += bytes([len(piece) - 1 << 2]) + piece
    return out


class Sender(threading.Thread):
    """Sends samples of a few series, and remembers what was acknowledged: for each series the time of the last one."""

    name, file = "", ""

    def __init__(self):
        super().__init__(daemon=True)
        self.last = 0
        self.refused = []
        self.connection = None

    def run(self):
        while not stop.is_set() and self.last < MOST:
            try:
                count = random.randrange(1, 20)
                times = [self.last + 1 + number for number in range(count)]
                self.send(times)
                self.last = times[-1]
                # As many as there are rows for, however long it takes.
                time.sleep(0.02)
            except (OSError, http.client.HTTPException):
                # It was killed. What was sent is sent again.
                self.connection = None
                time.sleep(0.01)

    def path(self, series):
        return self.file.format(series=series)


def value(series, second):
    return series * 1_000_000 + second


class Rrdcached(Sender):
    name, file = "rrdcached", "r/{series}.rrd"

    def ask(self, text):
        if self.connection is None:
            self.connection = connect("r.sock")
            self.lines = self.connection.makefile("rb")
        self.connection.sendall(text.encode())
        answer = self.lines.readline().decode()
        if not answer.endswith("\n"):
            raise OSError("cut off")
        return answer

    def send(self, times):
        for series in range(SERIES):
            if self.last == 0 and times[0] == 1:
                made = self.ask(
                    f"CREATE {self.path(series)} -O -b {START} -s 1 DS:value:GAUGE:200000:U:U RRA:LAST:0.5:1:200000\n"
                )
                if "created" not in made and "exists" not in made:
                    self.refused.append(made)
            updates = " ".join(f"{START + at}:{value(series, at)}" for at in times)
            answer = self.ask(f"UPDATE {self.path(series)} {updates}\n")
            # What was taken before it was killed is refused when it is sent again.
            while answer.startswith("-1 illegal attempt"):
                last = int(float(answer.split("last update time is ")[1].split(" ")[0])) - START
                if last >= times[-1]:
                    break
                updates = " ".join(f"{START + at}:{value(series, at)}" for at in times if at > last)
                answer = self.ask(f"UPDATE {self.path(series)} {updates}\n")
            if answer.startswith("-1") and "illegal attempt" not in answer:
                self.refused.append(answer)


class Unixsock(Sender):
    name, file = "unixsock", "web/test-{series}/gauge.rrd"

    def send(self, times):
        if self.connection is None:
            self.connection = connect("c.sock")
            self.lines = self.connection.makefile("rb")
        for series in range(SERIES):
            lists = " ".join(f"{START + at}:{value(series, at)}" for at in times)
            self.connection.sendall(f"PUTVAL web/test-{series}/gauge interval=1 {lists}\n".encode())
            answer = self.lines.readline().decode()
            if not answer.endswith("\n"):
                raise OSError("cut off")
            if not answer.startswith("0 "):
                self.refused.append(answer)


class Http(Sender):
    socket, target, headers = "", "", {}

    def body(self, times):
        raise NotImplementedError

    def send(self, times):
        if self.connection is None:
            self.connection = Unix(self.socket)
        self.connection.request("POST", self.target, self.body(times), self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status == 503:
            raise OSError("no room")
        # Samples that were taken before it was killed are not after the newest when they are sent again.
        if answer.status not in (200, 204) and b"not after the newest" not in text:
            self.refused.append(f"{answer.status} {text}")


class Influx(Http):
    name, file, socket, target = "influx", "influx/i/series={series}.rrd", "i.sock", "/write?precision=s"

    def body(self, times):
        return "\n".join(
            f"i,series={series} value={value(series, at)} {START + at}" for series in range(SERIES) for at in times
        )


class RemoteWrite(Http):
    name, file, socket, target = "remote write", "prometheus/w/series={series}.rrd", "w.sock", "/api/v1/write"
    headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}

    def body(self, times):
        message = b""
        for series in range(SERIES):
            labels = b""
            for label, text in (("__name__", "w"), ("series", str(series))):
                labels += field(1, field(1, label.encode()) + field(2, text.encode()))
            for at in times:
                sample = b"\x09" + struct.pack("<d", value(series, at)) + b"\x10" + varint((START + at) * 1000)
                labels += field(2, sample)
            message += field(1, labels)
        return snappy(message)


class Otlp(Http):
    name, file, socket, target = "OTLP", "otlp/o/series={series}.rrd", "o.sock", "/v1/metrics"
    headers = {"Content-Type": "application/json"}

    def body(self, times):
        points = [
            {
                "attributes": [{"key": "series", "value": {"stringValue": str(series)}}],
                "timeUnixNano": str((START + at) * 1_000_000_000),
                "asDouble": float(value(series, at)),
            }
            for series in range(SERIES)
            for at in times
        ]
        metrics = [{"name": "o", "gauge": {"dataPoints": points}}]
        return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]})


def load():
    """What nobody acknowledges: lines, datagrams, damage, connections that say nothing."""
    second = 0
    while not stop.is_set():
        try:
            lines = connect("g.sock")
            silent = [connect(name) for name in ("r.sock", "c.sock", "i.sock", "g.sock")]
            datagrams = connect("gd.sock", socket.SOCK_DGRAM)
            sums = connect("s.sock", socket.SOCK_DGRAM)
            while not stop.is_set():
                second += 1
                lines.sendall(f"load.{second % 50} {second} {START + second}\ngarbage\n".encode())
                datagrams.send(f"load.d{second % 50} {second} {START + second}".encode())
                sums.send(b"hits:1|c\nusers:%d|s\nbad" % (second % 100))
                time.sleep(0.001)
            del silent
        except OSError:
            time.sleep(0.01)


def start():
    log = open("serve.log", "ab")
    daemon = subprocess.Popen([KYMO, "serve", "--config", "serve.toml"], stderr=log)
    end = time.time() + 60
    while True:
        try:
            connection = connect("m.sock")
            connection.sendall(b"GET /-/ready HTTP/1.0\r\n\r\n")
            if b" 200 " in connection.recv(100):
                return daemon
        except OSError:
            pass
        if daemon.poll() is not None or time.time() > end:
            sys.exit(f"the daemon does not start: {open('serve.log').read()[-2000:]}")
        time.sleep(0.01)


def rows(path):
    text = subprocess.run(
        [KYMO, "rrd", "fetch", f"data/{path}", "LAST", "-r", "1", "-s", str(START), "-e", str(START + 200_000)],
        capture_output=True, text=True, check=True,
    ).stdout
    found = {}
    for line in text.splitlines():
        at, colon, number = line.partition(": ")
        if colon and "nan" not in number:
            found[int(at) - START] = float(number)
    return found


senders = [Rrdcached(), Unixsock(), Influx(), RemoteWrite(), Otlp()]
daemon = start()
threads = senders + [threading.Thread(target=load, daemon=True)]
for thread in threads:
    thread.start()
for kill in range(KILLS):
    time.sleep(random.uniform(0.05, 0.8))
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    daemon = start()
time.sleep(0.5)
stop.set()
for thread in threads:
    thread.join(20)
# The last one is killed as well: what it has acknowledged is in its journal only.
daemon.send_signal(signal.SIGKILL)
daemon.wait()
daemon = start()
daemon.terminate()
status = daemon.wait()

failed = status != 0
for sender in senders:
    lost = wrong = 0
    for series in range(SERIES):
        found = rows(sender.path(series))
        for at in range(1, sender.last + 1):
            if at not in found:
                lost += 1
            elif found[at] != value(series, at):
                wrong += 1
    failed |= bool(lost or wrong or sender.refused or sender.last < 100)
    print(
        f"{sender.name}: {sender.last * SERIES} samples acknowledged, {lost} lost, {wrong} wrong, "
        f"{len(sender.refused)} refused {sender.refused[:2] or ''}"
    )
print(f"{KILLS} kills, exit status {status} at the end")
sys.exit(1 if failed else 0)
