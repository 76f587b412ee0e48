#!/usr/bin/env bash
# Runs programs that are linked to librrd with Debian's library and with kymo's, and compares what they print.
#
#     compare.sh LIBRARY
#
# The library is librrd.so as cargo builds it. What is not installed of Ruby, Lua and PHP is left out.
set -euo pipefail
library=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
export TZ=Europe/Zurich LC_ALL=C.UTF-8
unset RRDCACHED_ADDRESS
mkdir "$work/lib"
cp "$library" "$work/lib/librrd.so.8"
debian=$(ldconfig -p | awk '/librrd\.so\.8/ && !found++ { print $NF }')

symbols() { nm -D --defined-only "$1" | awk '{ print $2, $3 }' | sort; }
diff <(symbols "$debian") <(symbols "$library")
readelf -d "$library" | grep 'SONAME.*\[librrd\.so\.8\]' >/dev/null
echo "symbols: $(symbols "$library" | wc -l) equal"

cc -Wall -Wextra -Werror -I "$here/../include" -o "$work/calls" "$here/calls.c" "$debian"

# Runs a command in a directory of its own, with each library, and compares the output. It fails if the command does:
# what could not run has nothing to compare.
compared() {
  local name=$1 kind
  shift
  for kind in debian kymo; do
    mkdir -p "$work/$kind/$name"
    (
      cd "$work/$kind/$name"
      [ "$kind" = debian ] || export LD_LIBRARY_PATH=$work/lib
      "$@" >../"$name.out" 2>&1 </dev/null || echo "failed: exit code $?" >>../"$name.out"
      sed -i "s#$work/$kind#DIR#g" ../"$name.out"
    )
  done
  diff "$work/debian/$name.out" "$work/kymo/$name.out"
  if grep '^failed: exit code' "$work/kymo/$name.out"; then
    tail "$work/kymo/$name.out"
    return 1
  fi
  echo "$name: $(wc -l <"$work/kymo/$name.out") lines equal"
}

# With a daemon, which is Debian's library's.
calls() {
  env -u LD_LIBRARY_PATH rrdcached -g -l "unix:$PWD/sock" -p "$PWD/pid" -b "$PWD" >/dev/null 2>&1 &
  local daemon=$! tries=0
  until [ -S sock ] || [ $((tries += 1)) -gt 100 ]; do sleep 0.1; done
  local status=0
  HARNESS_DAEMON=unix:$PWD/sock "$work/calls" || status=$?
  kill $daemon
  wait $daemon || true
  return $status
}

# rrdtool's own program.
tool() {
  rrdtool create t.rrd -b 1700000000 -s 60 DS:a:GAUGE:120:U:U DS:b:COUNTER:120:0:U \
    RRA:AVERAGE:0.5:1:60 RRA:MIN:0.5:5:60 RRA:HWPREDICT:60:0.1:0.01:12
  local step
  for step in $(seq 1 90); do echo "update t.rrd $((1700000000 + 60 * step)):$((step % 13)):$((step * 7))"; done |
    rrdtool - | grep -vc '^OK'
  rrdtool fetch t.rrd AVERAGE -s 1700000000 -e 1700003600
  rrdtool fetch t.rrd MIN -r 5m -s 1700000000 -e start+1h
  rrdtool info t.rrd | grep -v cur_row
  rrdtool dump t.rrd | grep -v '<row>' | grep -v 'cdp_prep' | head -60
  rrdtool updatev t.rrd 1700005460:4:900
  rrdtool last t.rrd
  rrdtool first t.rrd --rraindex 1
  rrdtool lastupdate t.rrd
  rrdtool tune t.rrd --heartbeat a:240 DS:c:GAUGE:60:U:U
  rrdtool xport -s 1700000000 -e 1700001000 DEF:a=t.rrd:a:AVERAGE CDEF:b=a,2,/ XPORT:a:one XPORT:b:two
  rrdtool xport --json -t -s 1700000000 -e 1700001000 DEF:a=t.rrd:a:AVERAGE XPORT:a:one
  rrdtool graph g.svg -a SVG -s 1700000000 -e 1700003600 DEF:a=t.rrd:a:AVERAGE LINE:a#ff0000:it 'PRINT:a:MAX:%.2lf'
  rrdtool graphv g.png -s 1700000000 -e 1700003600 DEF:a=t.rrd:a:AVERAGE AREA:a#00ff00:it 'GPRINT:a:LAST:%.1lf'
  rrdtool graph - -s 1700000000 -e 1700003600 DEF:a=t.rrd:a:AVERAGE LINE:a#ff0000 | head -c 4 | od -c
  rrdtool dump t.rrd t.xml
  rrdtool restore t.xml u.rrd
  rrdtool resize u.rrd 0 GROW 10
  rrdtool info resize.rrd | grep -v 'cur_row\|header_size'
  rrdtool list -r . | sort
  rrdtool fetch none.rrd AVERAGE
  rrdtool update t.rrd 5:5:5
  rrdtool foo 2>&1 | head -1 || true
}

# rrdcached, which is linked to the library.
daemon() {
  rrdtool create x.rrd -b 1700000000 -s 60 DS:a:GAUGE:120:U:U RRA:AVERAGE:0.5:1:20
  rrdcached -g -l "unix:$PWD/sock" -p "$PWD/pid" -b "$PWD" &
  local daemon=$! tries=0
  until [ -S sock ] || [ $((tries += 1)) -gt 100 ]; do sleep 0.1; done
  /usr/bin/python3 - <<'PYTHON' | grep -v cur_row
import socket
stream = socket.socket(socket.AF_UNIX)
stream.connect("sock")
stream.sendall(b"""UPDATE x.rrd 1700000060:1 1700000120:2 1700000180:3
PENDING x.rrd
FLUSH x.rrd
UPDATE x.rrd 1700000100:1
UPDATE x.rrd 1700000240:7
FETCH x.rrd AVERAGE 1700000000 1700000300
LAST x.rrd
FIRST x.rrd 0
INFO x.rrd
CREATE y.rrd -b 1700000000 -s 10 DS:b:GAUGE:20:U:U RRA:LAST:0:1:5
UPDATE none.rrd 5:5
UPDATE y.rrd 1700000010:x
FLUSH y.rrd
QUIT
""")
while data := stream.recv(65536):
    print(data.decode(), end="")
PYTHON
  kill $daemon
  wait $daemon || true
  env -u LD_LIBRARY_PATH rrdtool fetch x.rrd AVERAGE -s 1700000000 -e 1700000300
}

compared calls calls
compared rrdtool tool
compared rrdcached daemon
compared perl perl "$here/bindings.pl"
compared python /usr/bin/python3 "$here/bindings.py"
if ruby -e 'require "RRD"' 2>/dev/null; then compared ruby ruby "$here/bindings.rb"; fi
if lua5.3 -e 'require "rrd"' 2>/dev/null; then compared lua lua5.3 "$here/bindings.lua"; fi
if php -m 2>/dev/null | grep -qx rrd; then ZEND_DONT_UNLOAD_MODULES=1 compared php php "$here/bindings.php"; fi
