#!/bin/sh
# Makes the certificates of the tests again, with OpenSSL: an authority, a server, a client, and another authority. Keys
# of tests are no secrets.
set -eu
cd "$(dirname "$0")"
days=36500
key() { openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }
authority() {
    key "$2"
    openssl req -x509 -new -key "$2" -subj "/CN=$3" -days $days -out "$1" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
}
signed() {
    key "$1.key"
    openssl req -new -key "$1.key" -subj "/CN=$1" -addext "subjectAltName=$2" -out request.tmp
    openssl x509 -req -in request.tmp -CA ca.pem -CAkey ca.tmp -days $days -copy_extensions copy -out "$1.pem"
}
authority ca.pem ca.tmp "kymo tests"
authority other.pem other.tmp "other"
signed server DNS:localhost,IP:127.0.0.1
signed client DNS:client
rm -f ca.tmp other.tmp request.tmp
