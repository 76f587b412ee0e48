#!/usr/bin/env bash
# Installs, upgrades and removes the Debian package in a clean system below a directory; needs root, debootstrap and the network.
#
#     packaging/test.sh PACKAGE [TRACE]
set -euo pipefail
package=$(realpath "$1")
trace=$(realpath "${2:-$(dirname "$0")/../examples/lttng-small}")
daemon=
. "$(dirname "$0")/clean-root.sh"
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true; remove_root' EXIT

cp "$package" "$root/first.deb"
# The same package as a later version.
dpkg-deb --raw-extract "$package" "$work/later"
sed -i 's/^Version: .*/&+later/' "$work/later/DEBIAN/control"
dpkg-deb --build --root-owner-group -Zgzip "$work/later" "$root/later.deb" >/dev/null
cp -r "$trace" "$root/trace"

inside dpkg --install /first.deb
inside kymo --version | grep -q '^kymo ' || fail 'the program does not start'
[ "$(inside kymo print /trace | wc -l)" -gt 0 ] || fail 'no event was printed'
inside getent passwd kymo >/dev/null || fail 'no user was created'
[ "$(stat -c %U:%a "$root/var/lib/kymo/rrd" 2>/dev/null)" = "$(inside id -u kymo >/dev/null && stat -c %U "$root/var/lib/kymo"):750" ] ||
  fail 'the directory of databases is missing or open to others'
inside systemd-analyze verify --man=no /usr/lib/systemd/system/kymo-serve.service || fail 'the unit is wrong'
for file in usr/share/man/man1/kymo.1.gz usr/share/bash-completion/completions/kymo \
  usr/share/zsh/vendor-completions/_kymo usr/share/fish/vendor_completions.d/kymo.fish etc/apparmor.d/kymo-serve; do
  [ -s "$root/$file" ] || fail "$file is missing"
done
# The daemon starts with the configuration that is installed.
mkdir -p "$root/run/kymo" && inside chown kymo:kymo /run/kymo
# Not through the function: signals would go to a shell.
"${clean[@]}" setpriv --reuid=kymo --regid=kymo --clear-groups kymo serve --config /etc/kymo/serve.toml &
daemon=$!
for _ in $(seq 100); do
  [ -S "$root/run/kymo/rrdcached.sock" ] && break
  sleep 0.1
done
[ -S "$root/run/kymo/rrdcached.sock" ] || fail 'kymo serve does not listen'
inside kymo rrd create --daemon unix:/run/kymo/rrdcached.sock /var/lib/kymo/rrd/kept.rrd --step 1 DS:a:GAUGE:10:U:U RRA:LAST:0.5:1:10
kill "$daemon" && wait "$daemon" || fail 'kymo serve did not end well'
daemon=

echo '# mine' >>"$root/etc/kymo/serve.toml"
inside dpkg --install /later.deb
grep -qx '# mine' "$root/etc/kymo/serve.toml" || fail 'the upgrade replaced the configuration'
[ -s "$root/var/lib/kymo/rrd/kept.rrd" ] || fail 'the upgrade removed a database'
inside dpkg --remove kymo
[ ! -e "$root/usr/bin/kymo" ] || fail 'the program is still there'
[ -e "$root/etc/kymo/serve.toml" ] || fail 'removal took the configuration along'
inside dpkg --purge kymo
[ ! -e "$root/etc/kymo/serve.toml" ] || fail 'the configuration is still there'
[ -s "$root/var/lib/kymo/rrd/kept.rrd" ] || fail 'the databases were removed'
echo "package: installed, upgraded and removed in a clean $codename"
