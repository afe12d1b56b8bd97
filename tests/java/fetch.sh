#!/usr/bin/env bash
# Everything that the Java tests need from Maven's repository, and the driver compiled: once, then nothing is fetched.
# Usage: tests/java/fetch.sh    (JDK 17 and Maven on PATH)
set -euo pipefail
cd "$(dirname "$0")"

fetch() { # folder, mark that stands for "it is complete", Maven's arguments
  local folder=$1 mark=$2
  shift 2
  [ -e "$folder/$mark" ] && [ "$folder/$mark" -nt "$folder/pom.xml" ] && return
  (cd "$folder" && mvn --quiet --batch-mode -Dstyle.color=never dependency:copy-dependencies "$@")
  touch "$folder/$mark"
}

compile() { # client version
  local classes=driver/target/classes-$1
  if [ -e "$classes/.done" ] && [ -z "$(find driver/src -newer "$classes/.done" -print -quit)" ]; then return; fi
  rm -rf "$classes.new"
  javac --release 11 -Xlint:all,-serial,-processing -Werror -cp "driver/target/lib-$1/*" -d "$classes.new" driver/src/*.java
  touch "$classes.new/.done"
  rm -rf "$classes"
  mv "$classes.new" "$classes"
}

# The last broker of the 4 line that Maven's repository has.
for version in 5.4.0 4.9.7; do
  fetch apache "target/lib-$version/.done" -Drocketmq.version="$version"
done
for version in 5.4.0 4.9.8; do
  fetch driver "target/lib-$version/.done" -Dclient.version="$version"
  compile "$version"
done
