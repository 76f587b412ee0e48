# What python3-rrdtool answers. Run with librrd and with kymo's, the output must be the same.
import os
import rrdtool

START = 1700000000


def tell(what, call, *words):
    try:
        print(what, call(*words))
    except Exception as error:
        print(what, type(error).__name__, error)


print(rrdtool.lib_version())
tell("create", rrdtool.create, "p.rrd", "--start", str(START), "--step", "5m", "DS:a:GAUGE:10m:0:U",
     "DS:b:DERIVE:600:U:U", "RRA:AVERAGE:0.5:5m:1d", "RRA:LAST:0.5:1h:7d")
tell("create bad", rrdtool.create, "q.rrd", "RRA:AVERAGE:0.5:1:10")
for step in range(1, 40):
    rrdtool.update("p.rrd", f"{START + 300 * step}:{step * 1.1}:{step * step}")
tell("update past", rrdtool.update, "p.rrd", "1:2:3")
tell("skip past", rrdtool.update, "p.rrd", "--skip-past-updates", "1:2:3")
tell("updatev", rrdtool.updatev, "p.rrd", f"{START + 12300}:1:2000")
tell("first", rrdtool.first, "p.rrd")
tell("last", rrdtool.last, "p.rrd")
tell("lastupdate", rrdtool.lastupdate, "p.rrd")
tell("fetch", rrdtool.fetch, "p.rrd", "AVERAGE", "-s", str(START), "-e", "start+3h")
tell("fetch 1h", rrdtool.fetch, "p.rrd", "LAST", "-r", "1h", "-s", str(START), "-e", "start+4h", "-a")
info = rrdtool.info("p.rrd")
for key in sorted(info):
    if "cur_row" not in key:
        print(key, info[key])
tell("info", rrdtool.info, "none.rrd")
tell("tune", rrdtool.tune, "p.rrd", "--data-source-rename", "a:c")
tell("resize", rrdtool.resize, "p.rrd", "0", "SHRINK", "8")
tell("dump", rrdtool.dump, "p.rrd", "p.xml")
print(open("p.xml").read()[-3000:])
export = rrdtool.xport("-s", str(START), "-e", str(START + 7200), "--step", "600", "DEF:x=p.rrd:c:AVERAGE", "XPORT:x:it")
print(export)
tell("graph", rrdtool.graph, "p.png", "-s", str(START), "-e", str(START + 7200), "DEF:x=p.rrd:c:AVERAGE",
     "LINE2:x#000000", "PRINT:x:LAST:%.2lf")
facts = rrdtool.graphv("-", "-s", str(START), "-e", str(START + 7200), "-a", "SVG", "DEF:x=p.rrd:c:AVERAGE",
                       "LINE2:x#000000:it", "PRINT:x:LAST:%.2lf")
print({key: value if key != "image" else value[:5] for key, value in facts.items()})
tell("list", lambda: sorted(rrdtool.list(os.getcwd())))
tell("flushcached", rrdtool.flushcached, "p.rrd", "-d", "unix:/nowhere/sock")


def rows(filename, cf, start, end, step):
    return {"start": start, "step": 60, "data": {"v": [float(n) for n in range((end - start) // 60)]}}


tell("register", rrdtool.register_fetch_cb, rows)
tell("graph callback", rrdtool.graph, "cb.png", "-s", str(START), "-e", str(START + 600), "DEF:x=cb//x:v:AVERAGE",
     "LINE:x#000000", "PRINT:x:MAX:%.1lf")
# A callback that fails says why. The binding keeps no reference to it.
def failing(**words):
    return answer


for what, answer in [("nothing", None), ("no step", {"start": START}), ("no rows", {"start": START, "step": 60}),
                     ("text", {"start": START, "step": 60, "data": {"v": "text"}})]:
    rrdtool.register_fetch_cb(failing)
    tell(what, rrdtool.graph, "cb.png", "-s", str(START), "-e", str(START + 600), "DEF:x=cb//x:v:AVERAGE", "LINE:x#000000")
tell("clear", rrdtool.clear_fetch_cb)
