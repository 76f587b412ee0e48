#!/usr/bin/env bash
# Makes Debian packages of the library and its headers, which take the place of Debian's librrd8 and librrd-dev.
#
#     package.sh DIRECTORY [LIBRARY]
#
# The packages are written to the directory. The library is built for release unless a file is given.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
mkdir -p "$1"
to=$(realpath "$1")
library=${2:-}
if [ -z "$library" ]; then
  (cd "$here/.." && cargo build --release --locked -p kymo-librrd)
  library=$here/../target/release/librrd.so
fi

# The version of librrd whose interface it is; packages that depend on librrd8 ask for it.
interface=1.7.2
version=$(sed -n '/^\[workspace\.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' "$here/../Cargo.toml")
architecture=$(dpkg --print-architecture)
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
glibc=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# package NAME DEPENDS REPLACED DESCRIPTION: makes a package of the files in a directory of that name.
package() {
  mkdir -p "$work/$1/DEBIAN" "$work/$1/usr/share/doc/$1"
  cp "$here/../LICENSE-MIT" "$work/$1/usr/share/doc/$1/copyright"
  cat >"$work/$1/DEBIAN/control" <<CONTROL
Package: $1
Version: $version
Architecture: $architecture
Maintainer: kymo
Section: libs
Priority: optional
Depends: $2
Provides: $3 (= $interface)
Conflicts: $3
Replaces: $3
Description: $4
 Programs that are linked to librrd.so.8 run on it unchanged.
CONTROL
  dpkg-deb --build --root-owner-group -Zgzip "$work/$1" "$to" >/dev/null
  echo "$to/$1_${version}_$architecture.deb"
}

lib=$work/librrd8-kymo/usr/lib/$triplet
mkdir -p "$lib"
install -m 644 "$library" "$lib/librrd.so.8"
strip --strip-unneeded "$lib/librrd.so.8"
package librrd8-kymo "libc6 (>= $glibc), libgcc-s1" librrd8 "kymo's library of round-robin databases"

dev=$work/librrd-dev-kymo/usr
mkdir -p "$dev/include" "$dev/lib/$triplet/pkgconfig"
install -m 644 "$here"/include/*.h "$dev/include"
ln -s librrd.so.8 "$dev/lib/$triplet/librrd.so"
cat >"$dev/lib/$triplet/pkgconfig/librrd.pc" <<PC
prefix=/usr
libdir=\${prefix}/lib/$triplet
includedir=\${prefix}/include

Name: librrd
Description: Round-robin databases
Version: $interface
Libs: -L\${libdir} -lrrd
Cflags: -I\${includedir}
PC
package librrd-dev-kymo "librrd8-kymo (= $version)" librrd-dev "headers of kymo's library of round-robin databases"
