# A clean system of this Debian below a directory, for tests of packages that are installed; to be sourced. Needs root,
# debootstrap and the network. The system is made once, in target/, and each test works in a copy.
#
#     $root    the directory of the copy
#     inside   runs a command in it
#     fail     ends the test with a message
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
work=$(mktemp -d)
root=$work/root
clean=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TZ=UTC DEBIAN_FRONTEND=noninteractive chroot "$root")

fail() {
  echo "package: $*" >&2
  exit 1
}
inside() {
  "${clean[@]}" "$@"
}
remove_root() {
  umount -q "$root/proc" || true
  rm -rf "$work"
}
trap remove_root EXIT

make_root() {
  local base
  base=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")/target/clean-$codename
  if [ ! -d "$base" ]; then
    mkdir -p "$(dirname "$base")"
    debootstrap --variant=minbase --include=systemd,tzdata "$codename" "$work/base" >"$work/log" || {
      tail "$work/log" >&2
      fail 'debootstrap failed'
    }
    mv "$work/base" "$base"
  fi
  cp -a --reflink=auto "$base" "$root"
  mount -t proc proc "$root/proc" || echo "package: without /proc" >&2
}
make_root
