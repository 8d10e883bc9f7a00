# Shared by the scripts; sourced. Sets root to the project's folder.
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

die() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# The comment at a script's head. An installation calls scripts/train by another name, and builds nothing.
head_comment() {
  local own="s#scripts/train#${ZERO_LAUNCHER:-scripts/train}#"
  [ -z "${ZERO_LAUNCHER:-}" ] || own+="; /^Sets up, builds/,/builds nothing/d"
  sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0" | sed "$own"
}

# Any script called with --help alone prints it and does nothing.
case "${1:-}" in
  -h | --help) head_comment; exit 0 ;;
esac

# The cores that this process may use: its affinity, and the quota of its control group if there is one.
cores() {
  local n quota="" period=""
  n="$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)"  # nproc obeys both
  if [ -r /sys/fs/cgroup/cpu.max ]; then
    read -r quota period < /sys/fs/cgroup/cpu.max
  elif [ -r /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
    quota="$(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us)"
    period="$(cat /sys/fs/cgroup/cpu/cpu.cfs_period_us)"
  fi
  if [[ "$quota" =~ ^[0-9]+$ ]] && [ "$quota" -gt 0 ]; then
    local allowed=$(((quota + period - 1) / period))
    [ "$allowed" -lt "$n" ] && n="$allowed"
  fi
  echo "$n"
}
