#!/usr/bin/env bash
# clang-tidy-19 on the sources that changed against origin/main, or against the last commit; with
# ALL=1, or without history, on all. A changed header counts as a change of every source in src/.
#   tools/clang_tidy.sh build/clang
set -euo pipefail
build=$1
shopt -s globstar nullglob
every=(src/**/*.cpp examples/*.cpp)

changed() {
  git diff --name-only --diff-filter=d "$1" -- && git ls-files --others --exclude-standard
}

since=""
for base in origin/main HEAD~; do
  if git rev-parse --quiet --verify "$base^{commit}" >/dev/null 2>&1; then
    since=$base
    break
  fi
done

files=()
if [[ -n ${ALL:-} || -z $since ]]; then
  files=("${every[@]}")
else
  list=$(changed "$since")
  header=$(grep --max-count=1 --extended-regexp '^(src|include)/.*\.hpp$' <<<"$list" || true)
  for file in "${every[@]}"; do
    if [[ $file == src/* && -n $header ]] || grep --quiet --line-regexp "$file" <<<"$list"; then
      files+=("$file")
    fi
  done
fi

if [[ ${#files[@]} -eq 0 ]]; then
  echo "no source changed since $since"
  exit 0
fi
printf '%s\0' "${files[@]}" |
  xargs --null --max-args=1 --max-procs="${JOBS:-2}" sh -c \
    'echo "  $2"; exec clang-tidy-19 --quiet -p "$1" "$2" 2>/dev/null' tidy "$build"
