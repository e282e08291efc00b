#!/usr/bin/env bash
# Installs the packages of the dashboard, and builds it.
#   tools/web.sh modules   install the packages of web/package-lock.json
#   tools/web.sh build     modules, then build web/src into web/dist
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
