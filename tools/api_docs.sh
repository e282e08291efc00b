#!/usr/bin/env bash
# Makes the API reference from the comments in include/tenure, and fails if one is missing or wrong.
#   tools/api_docs.sh FOLDER
set -euo pipefail
folder=$(realpath --canonicalize-missing "$1")
cd "$(dirname "$0")/.."
for program in examples/*.cpp; do
  grep --quiet "@example $(basename "$program")\$" docs/api/examples.dox || {
    echo "docs/api/examples.dox does not name $program" >&2
    exit 1
  }
done
rm -rf "$folder/html"
mkdir -p "$folder"
# FAIL_ON_WARNINGS reports all warnings; WARN_AS_ERROR=YES would stop at the first.
{ cat docs/api/Doxyfile && printf '%s\n' "OUTPUT_DIRECTORY = $folder" WARN_AS_ERROR=FAIL_ON_WARNINGS
} | doxygen -
echo "the API reference is at $folder/html/index.html"
