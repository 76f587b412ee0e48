#!/usr/bin/env bash
# Builds programs in C, C++ and Rust, and records them with LTTng.
# usage: record.sh SOURCES WORK
# needs (Debian): lttng-tools liblttng-ust-dev g++ rustc
set -euo pipefail
sources=${1:?sources} work=${2:?directory}
cd "$work"
cp "$sources"/* .
export LTTNG_HOME=$work/home LTTNG_UST_REGISTER_TIMEOUT=5000
mkdir -p home
for file in tp shared plugin; do gcc -g -O1 -fPIC -I. -c $file.c; done
g++ -g -O1 -fPIC -I. -c cxx.cpp
gcc -shared -Wl,--build-id -o libtp.so tp.o -llttng-ust -ldl
gcc -shared -Wl,--build-id -o libshared.so shared.o -L. -ltp -llttng-ust
gcc -shared -Wl,--build-id -o libplugin.so plugin.o -L. -ltp -llttng-ust
link=(cxx.o -L. -lshared -ltp -llttng-ust -ldl -Wl,-rpath,"$work" -Wl,--build-id)
gcc -g -O1 -fPIE -I. -c -o pie.o main.c && g++ -pie -o pie pie.o "${link[@]}"
gcc -g -O1 -fno-pie -I. -c -o fixed.o main.c && g++ -no-pie -o fixed fixed.o "${link[@]}"
# Its units are in files of their own.
gcc -g -O1 -gsplit-dwarf -fPIE -I. -c -o split.o main.c && g++ -pie -o split split.o "${link[@]}"
gcc -g -O1 -finstrument-functions -fPIE -pie -Wl,--build-id -o calls calls.c
rustc --edition 2024 -g -O -C link-arg=-llttng-ust -C link-arg=-Wl,--build-id -o rusty rusty.rs
lttng-sessiond --no-kernel >sessiond.log 2>&1 & sessiond=$!
trap 'lttng destroy symbols >/dev/null 2>&1 || true; kill $sessiond 2>/dev/null || true; wait $sessiond 2>/dev/null || true' EXIT
for _ in $(seq 50); do lttng list >/dev/null 2>&1 && break; sleep 0.1; done
lttng create symbols --output="$work/trace" >/dev/null
lttng enable-channel --userspace main >/dev/null
for events in sym lttng_ust_statedump lttng_ust_dl lttng_ust_lib lttng_ust_tracef lttng_ust_cyg_profile; do
    lttng enable-event --userspace --channel=main "$events:*" >/dev/null
done
lttng add-context --userspace --channel=main --type=ip --type=vpid --type=vtid >/dev/null
lttng start >/dev/null
libraries=$(dirname "$(ldconfig -p | sed -n 's/.*liblttng-ust-dl.so.1 .*=> //p' | head -1)")
for program in "pie 2" fixed split "pie 1"; do
    LD_PRELOAD=$libraries/liblttng-ust-dl.so.1 ./$program
done
# Nothing says what this one opens.
./pie 1
./rusty
LD_PRELOAD=$libraries/liblttng-ust-cyg-profile.so.1 ./calls >/dev/null
lttng stop >/dev/null
lttng destroy symbols >/dev/null
# The same system without debug information in the files: in symbol tables alone, and in separate files.
mkdir -p "tables$work" "linked$work" debug
for file in pie fixed calls rusty libshared.so libplugin.so libtp.so; do
    strip -g -o "tables$work/$file" $file
    id=$(readelf -n $file | sed -n 's/.*Build ID: //p')
    mkdir -p "debug/.build-id/${id:0:2}"
    objcopy --only-keep-debug $file "debug/.build-id/${id:0:2}/${id:2}.debug"
    objcopy --only-keep-debug $file "linked$work/$file.debug"
    (cd "linked$work" && strip -g -o $file "$work/$file" && objcopy --add-gnu-debuglink=$file.debug $file)
done
