#!/usr/bin/env bash
# The dashboard's packages, and the dashboard made of its sources.
#   tools/web.sh modules   fetch what web/package-lock.json names, unless it is there
#   tools/web.sh build     modules, then web/src -> web/dist
set -euo pipefail
cd "$(dirname "$0")/../web"

modules() {
  ../tools/node_modules.sh .
}

case ${1:-} in
  modules) modules ;;
  build)
    modules
    node node_modules/typescript/bin/tsc --noEmit
    node node_modules/vite/bin/vite.js build
    ;;
  *)
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 64
    ;;
esac
