#!/usr/bin/env bash
# The Go client's modules, and the driver compiled: once, then nothing is fetched.
# Usage: tests/go/fetch.sh    (Go 1.19 or later on PATH)
set -euo pipefail
cd "$(dirname "$0")/driver"

driver=target/driver
if [ -e "$driver" ] && [ -z "$(find ./*.go go.mod go.sum -newer "$driver" -print -quit)" ]; then exit; fi
mkdir -p target
# Without C: the driver needs no compiler but Go's own; without stamps: it needs no git.
CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -o "$driver.new" .
mv "$driver.new" "$driver"
