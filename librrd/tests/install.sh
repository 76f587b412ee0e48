#!/usr/bin/env bash
# Installs the Debian package of the library in place of Debian's librrd8 in a clean system below a directory, runs
# rrdtool, Perl's RRDs, python3-rrdtool and php-rrd on it, and goes back to librrd8; needs root, debootstrap and the network.
#
#     install.sh PACKAGE
#
# What the programs print must be the same before, with kymo's library, and afterwards.
set -euo pipefail
package=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
. "$here/../../packaging/clean-root.sh"

# Debian's programs, with Debian's library.
programs=(rrdtool librrds-perl python3-rrdtool php-cli php-rrd)
inside apt-get update -q >"$work/log"
inside apt-get install -qy --no-install-recommends "${programs[@]}" >>"$work/log" 2>&1 || {
  tail "$work/log" >&2
  fail "${programs[*]} cannot be installed"
}
cp "$package" "$root/librrd8-kymo.deb"
cp "$here"/bindings.{pl,py,php} "$root"

# library OWNER: the only library there is belongs to this package, and all dependencies are fulfilled.
library() {
  local file
  file=$(inside ldconfig -p | awk '/librrd\.so\.8/ { print $NF }')
  [ "$(wc -l <<<"$file")" = 1 ] || fail "there are several libraries: $file"
  # The directories are links in systems whose /usr is merged.
  inside dpkg-query -S "*/$(basename "$(inside readlink -f "$file")")" | grep -q "^$1[:,]" || fail "$file is not of $1"
  inside apt-get check -q >/dev/null || fail "dependencies are missing with $1"
  local program
  for program in "${programs[@]}"; do
    inside dpkg-query -W -f '${db:Status-Abbrev}' "$program" | grep -q '^ii' || fail "$program was removed with $1"
  done
}

# printed NAME: runs the programs and keeps what they print.
printed() {
  inside sh -euc '
    rm -rf /tmp/run && mkdir -p /tmp/run/perl /tmp/run/python /tmp/run/php && cd /tmp/run
    rrdtool create t.rrd -b 1700000000 -s 60 DS:a:GAUGE:120:U:U RRA:AVERAGE:0.5:1:60 RRA:MAX:0.5:5:60
    for step in 1 2 3 4 5 6 7 8 9 10; do rrdtool update t.rrd $((1700000000 + 60 * step)):$step; done
    rrdtool fetch t.rrd AVERAGE -s 1700000000 -e 1700000600
    rrdtool info t.rrd | grep -v cur_row
    rrdtool lastupdate t.rrd
    rrdtool graph t.png -s 1700000000 -e 1700000600 DEF:a=t.rrd:a:AVERAGE LINE:a#ff0000:it PRINT:a:MAX:%.2lf
    (cd perl && perl /bindings.pl)
    (cd python && python3 /bindings.py)
    # To unload the module may end PHP with a fault: threads of the library may still run.
    (cd php && ZEND_DONT_UNLOAD_MODULES=1 php /bindings.php)
  ' >"$work/$1" 2>&1 </dev/null || {
    tail "$work/$1" >&2
    fail "the programs fail with $1"
  }
}

# replaced PACKAGE OTHER: installs a package, which removes the other and nothing else.
replaced() {
  inside apt-get install -qy "$1" >"$work/log" 2>&1 || {
    tail "$work/log" >&2
    fail "$1 cannot be installed"
  }
  grep -q '^0 upgraded, 1 newly installed, 1 to remove' "$work/log" || fail "more than $2 changed: $(grep ' newly ' "$work/log")"
}

library librrd8
printed debian
replaced /librrd8-kymo.deb librrd8
library librrd8-kymo
printed kymo
diff "$work/debian" "$work/kymo" || fail "the programs print something else with kymo's library"
replaced librrd8 librrd8-kymo
library librrd8
printed again
diff "$work/debian" "$work/again" || fail "the programs print something else after going back"
echo "package: librrd8 was replaced and came back in a clean $codename, $(wc -l <"$work/kymo") lines equal"
