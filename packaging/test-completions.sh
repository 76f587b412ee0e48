#!/usr/bin/env bash
# Runs bash, zsh and fish with kymo's completions: options, and the names that the recording on the line has.
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

# What a shell offers for a line, one word a line, sorted.
offered_bash() {
  kymo completions bash >script.bash
  bash --norc -c '
    source ./script.bash
    COMP_LINE=$1 COMP_POINT=${#1}
    # As readline parts words.
    read -ra COMP_WORDS <<<"${1//:/ : }"
    [[ $1 == *[[:space:]:] ]] && COMP_WORDS+=("")
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
  fish -c 'complete -C $argv[1]' -- "$1" | cut -f 1
}
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
zpty -n -w shell "$1"$'\t'
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
done
# bash takes a colon for the end of a word.
expect bash 'kymo print trace --event demo:i' ints demo:ints
expect zsh 'kymo print trace --event demo:i' demo:ints demo:floats
expect fish 'kymo print trace --event demo:i' demo:ints demo:floats
[ "$status" = 0 ] && echo 'completions: bash, zsh and fish offer options, events and fields'
exit "$status"
