#!/usr/bin/env bash
# Makes the Java bindings of our headers with jextract, or checks that the committed ones are fresh.
#
#   bindings/generate.sh           writes bindings/src
#   bindings/generate.sh --check   exit 1 when a header or this script has changed since; needs no jextract.
#                                  With a jextract at hand it also generates anew and compares.
#
# jextract: $JEXTRACT, or the one on PATH. Pinned: jextract 25 (openjdk/jextract, master of 2026) with libclang 14;
# another version gives other formatting, so a difference under --check names this line.
set -euo pipefail
cd "$(dirname "$0")"

headers=(../native/include/fedcomuon.h ../native/include/vendor/{openblas,cublas,cusolver,nccl}.h)
jextract=${JEXTRACT:-$(command -v jextract || true)}

fingerprint() { sha256sum generate.sh "${headers[@]}"; }

generate() { # directory
  if [[ -z $jextract ]]; then
    echo "bindings/generate.sh: no jextract on PATH; set JEXTRACT to one built from openjdk/jextract" >&2
    exit 2
  fi
  # Only what our own headers declare: stdint.h would bring hundreds of names.
  local header=$1 class=$2 package=$3 out=$4 filter
  filter=$(mktemp)
  local gcc_include
  gcc_include=$(gcc -print-file-name=include)
  "$jextract" -I "$gcc_include" --dump-includes "$filter.all" "$header"
  grep -F "$(basename "$header")" "$filter.all" >"$filter"
  "$jextract" -I "$gcc_include" --output "$out" -t "$package" --header-class-name "$class" @"$filter" "$header"
  rm -f "$filter" "$filter.all"
}

generate_all() { # directory
  generate "${headers[0]}" FedComuonNative org.fedcomuon.internal.bindings.fedcomuon "$1"
  generate "${headers[1]}" OpenBlasNative org.fedcomuon.internal.bindings.openblas "$1"
  generate "${headers[2]}" CublasNative org.fedcomuon.internal.bindings.cublas "$1"
  generate "${headers[3]}" CusolverNative org.fedcomuon.internal.bindings.cusolver "$1"
  generate "${headers[4]}" NcclNative org.fedcomuon.internal.bindings.nccl "$1"
}

case "${1:-}" in
  "")
    rm -rf src/org # not the module descriptor, which is ours
    generate_all src
    fingerprint >SOURCES.sha256
    ;;
  --check)
    if ! fingerprint | cmp -s - SOURCES.sha256; then
      echo "bindings/generate.sh: the bindings are stale: a header or generate.sh changed after they were made" >&2
      exit 1
    fi
    if [[ -n $jextract ]]; then
      fresh=$(mktemp -d)
      trap 'rm -rf "$fresh"' EXIT
      generate_all "$fresh"
      if ! diff -r "$fresh/org" src/org; then
        echo "bindings/generate.sh: generating anew gives other files; see the pinned version in this script" >&2
        exit 1
      fi
    fi
    ;;
  *)
    echo "usage: bindings/generate.sh [--check]" >&2
    exit 2
    ;;
esac
