#!/usr/bin/env bash
# Writes every manual page: tenure(1) and those of its commands, tenured(8), tenure.toml(5),
# libtenure(3). The programs print all pages except the last, from the tables of their options.
#   tools/man_pages.sh FOLDER_OF_THE_PROGRAMS FOLDER_OF_THE_PAGES
set -euo pipefail

programs=$1 pages=$2
home=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$pages"

while read -r name command; do
  # Unquoted: each word of the command is one argument.
  # shellcheck disable=SC2086
  "$programs/tenure" man $command >"$pages/$name.1"
done < <("$programs/tenure" man --list)
"$programs/tenured" --print-man tenured >"$pages/tenured.8"
"$programs/tenured" --print-man tenure.toml >"$pages/tenure.toml.5"
version=$("$programs/tenured" --version)
sed "s/@VERSION@/${version#tenured }/" "$home/packaging/man/libtenure.3" >"$pages/libtenure.3"
