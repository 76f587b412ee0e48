#!/usr/bin/env bash
# Runs bash, zsh and fish with kymo's completions: options, files, and the names that the recording on the line, kymo's
# machines and its views have.
#
#     packaging/test-completions.sh PROGRAM [TRACE]
set -euo pipefail
program=$(realpath "$1")
trace=$(realpath "${2:-$(dirname "$0")/../examples/lttng-small}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$program" "$work/bin/kymo"
export PATH=$work/bin:$PATH HOME=$work LC_ALL=C.UTF-8 TERM=dumb
cd "$work"
ln -s "$trace" trace
mkdir directory
touch 'syfile' '[odd'

# What a shell offers for a line, one word a line. The cursor is at the end, or at a `^` in the line.
offered_bash() {
  kymo completions bash >script.bash
  bash --norc -c '
    source ./script.bash
    before=${1%%^*}
    COMP_LINE=${1/^/} COMP_POINT=${#before}
    # As readline parts words.
    read -ra COMP_WORDS <<<"${before//:/ : }"
    [[ $before == *[[:space:]:] ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    compopt() { :; }
    function=$(complete -p kymo | sed "s/.* -F \([^ ]*\) .*/\1/")
    "$function" kymo "$current" "$before"
    printf "%s\n" "${COMPREPLY[@]}"' bash "$1"
}
offered_fish() {
  mkdir -p .config/fish/completions
  kymo completions fish >.config/fish/completions/kymo.fish
  if [[ $1 != *^* ]]; then
    fish -c 'complete -C $argv[1]' -- "$1" | cut -f 1
    return
  fi
  # Only a terminal has a cursor: what it says is made up.
  fish -c '
    source $HOME/.config/fish/completions/kymo.fish
    set -g before (string split " " -- (string split "^" -- $argv[1])[1])
    set -g all (string split -n " " -- (string replace "^" "" -- $argv[1]))
    function commandline
      switch "$argv"
        case -opc; printf "%s\n" $before[1..-2]
        case "-ct" "-t"; printf "%s\n" $before[-1]
        case -op; printf "%s\n" $all
      end
    end
    __fish_kymo_names' -- "$1"
}
# The line that bash makes of another one and the tab key.
completed_bash() {
  kymo completions bash >script.bash
  zsh -f ./type.zsh "$1"
}
cat >type.zsh <<'EOF_TYPE'
zmodload zsh/zpty
zpty shell bash --norc -i
zpty -w shell 'PS1=; bind "set enable-bracketed-paste off"; source ./script.bash
bind -x '"'"'"\C-g": printf "kymo-%s:%s:\n" line "$READLINE_LINE"'"'"'; echo kymo-"ready"'
zpty -r -m shell ready '*kymo-ready*'
zpty -n -w shell "$1"$'\t\a'
zpty -r -m shell answer '*kymo-line:*:*'
print -r -- "$answer" | tr -d '\r' | sed -n 's/.*kymo-line:\(.*\):$/\1/p'
EOF_TYPE
offered_zsh() {
  mkdir -p functions
  kymo completions zsh >functions/_kymo
  zsh -f ./capture.zsh "$1"
}
cat >capture.zsh <<'EOF'
# A shell in a terminal of its own, whose completions are printed instead of shown.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PROMPT=; fpath=($HOME/functions $fpath); autoload -Uz compinit; compinit -u -D; unsetopt zle_bracketed_paste 2>/dev/null
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  typeset -a found
  builtin compadd -A found "$@"
  print -rl -- ${found/#/kymo-offers:}
  builtin compadd "$@"
}
finish() { compstate[insert]=; compstate[list]=; print kymo-done }
compprefuncs=(); comppostfuncs=(finish); bindkey "^I" complete-word; print kymo-ready'
zpty -r -m shell ready '*kymo-ready*kymo-ready*'
# Control-B moves the cursor back.
behind=${${1#*^}:-}
[[ $1 == *^* ]] || behind=
zpty -n -w shell "${1/^/}"${(pl:${#behind}::\x02:)}$'\t'
zpty -r -m shell answer '*kymo-done*'
print -r -- "$answer" | tr -d '\r' | sed -n 's/.*kymo-offers://p'
EOF

status=0
# SHELL, LINE, a word that is offered, a word that is not.
expect() {
  local words
  words=$("offered_$1" "$2" | sed 's/[[:space:]]*$//')
  if ! grep -qxF -- "$3" <<<"$words" || grep -qxF -- "$4" <<<"$words"; then
    printf '%s, `%s`: offered is\n%s\nexpected `%s` and not `%s`\n' "$1" "$2" "$words" "$3" "$4" >&2
    status=1
  fi
}
for shell in bash zsh fish; do
  expect "$shell" 'kymo print --ev' --event --end
  expect "$shell" 'kymo print trace --columns cpu' cpu_id u8
  expect "$shell" 'kymo print trace --columns time,cpu' time,cpu_id cpu_id
  expect "$shell" 'kymo latency trace --start demo' demo:ints cpu_id
  expect "$shell" 'kymo print --columns cpu^ trace' cpu_id u8
  expect "$shell" 'kymo rrd convert --to port' portable sparc
  expect "$shell" 'kymo rrd convert --to ' sparc directory
  expect "$shell" 'kymo latency sy' syscalls directory
  expect "$shell" 'kymo latency sy' syfile --start
done
# bash takes a colon for the end of a word.
expect bash 'kymo print trace --event demo:i' ints demo:ints
expect zsh 'kymo print trace --event demo:i' demo:ints demo:floats
expect fish 'kymo print trace --event demo:i' demo:ints demo:floats
# Files are completed by bash itself, with a slash behind a directory.
for command in print check latency 'rrd check' 'print trace'; do
  line=$(completed_bash "kymo $command dir")
  [ "$line" = "kymo $command directory/" ] || {
    printf 'bash, `kymo %s dir`: completed to `%s`\n' "$command" "$line" >&2
    status=1
  }
done
# The function offers nothing without a letter either.
for command in print check 'print trace'; do
  expect bash "kymo $command " '' --help
done
expect bash 'kymo rrd ' convert --help
expect bash 'kymo completions ' fish --help
[ "$status" = 0 ] && echo 'completions: bash, zsh and fish offer options, files, events, fields, machines and views'
exit "$status"
