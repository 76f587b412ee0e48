#!/usr/bin/env bash
# Runs the tests that come with rrdtool's sources with Debian's librrd and with kymo's, and compares which pass.
#
#     suite.sh SOURCES LIBRARY
#
# The sources are what `apt-get source rrdtool` unpacks, the library is librrd.so as cargo builds it. Debian's rrdtool,
# rrdcached, librrds-perl, librrdp-perl, python3-rrdtool, ruby-rrd, lua-rrd and dc must be installed.
set -euo pipefail
sources=$(realpath "$1")
library=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TZ=Europe/Zurich LC_ALL=C.UTF-8
unset RRDCACHED_ADDRESS
mkdir "$work/lib"
cp "$library" "$work/lib/librrd.so.8"

# Runs one test in the directory it is in, and prints its name and whether it passes.
run() {
  local name=$1 status=pass
  shift
  timeout 100 "$@" >"$name.log" 2>&1 </dev/null || status=fail
  # Some report failures with a status of success.
  if grep -qE '^(not ok|FAIL)' "$name.log"; then status=fail; fi
  echo "$name $status"
}

# Runs all tests below a directory.
all() {
  local name bindings=$sources/bindings
  mkdir -p "$1/src" "$1/x/y"
  cd "$1"
  ln -s "$(command -v rrdtool)" src/rrdtool
  ln -s "$(command -v rrdcached)" src/rrdcached
  cp -r "$sources/tests" .
  cd tests
  export BASEDIR=$1/tests BUILDDIR=$1/tests TOP_BUILDDIR=$1
  for name in $(sed -n '/^TESTS/,/[^\\]$/p' Makefile.am | tr -d '\\' | sed 's/TESTS =//'); do
    run "$name" bash "./$name"
  done
  cd ../x/y
  # It looks for the program two directories above.
  run perl-piped perl "$bindings/perl-piped/t/base.t"
  for name in base callback callback-long; do
    run "perl-$name" perl "$bindings/perl-shared/t/$name.t"
  done
  cp "$bindings/python/tests/test_fetch_cb.py" .
  run python /usr/bin/python3 -m unittest test_fetch_cb
  run ruby ruby "$bindings/ruby/test.rb"
  run lua lua5.3 "$bindings/lua/test.lua.bottom"
}

(all "$work/debian") >"$work/debian.txt"
(export LD_LIBRARY_PATH=$work/lib && all "$work/kymo") >"$work/kymo.txt"
cat "$work/kymo.txt"
diff "$work/debian.txt" "$work/kymo.txt"
echo "rrdtool's tests: $(grep -c pass "$work/kymo.txt") of $(wc -l <"$work/kymo.txt") pass, as with Debian's librrd"
