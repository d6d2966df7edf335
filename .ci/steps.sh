# What quickstart and runtests share: numbered steps with a log each, and packages. Sourced by
# both; sets STEPS (how many there are) before the first step.
# shellcheck shell=sh

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    BOLD=$(printf '\033[1m') GREEN=$(printf '\033[32m') RED=$(printf '\033[31m') PLAIN=$(printf '\033[0m')
else
    BOLD='' GREEN='' RED='' PLAIN=''
fi
STEP=0

# step TEXT: begin the next step.
step() {
    STEP=$((STEP + 1))
    printf '%s[%d/%d] %s%s\n' "$BOLD" "$STEP" "$STEPS" "$*" "$PLAIN"
}

# note TEXT: something to know, below the present step.
note() {
    printf '      %s\n' "$*"
}

fail() {
    printf '%s%s%s\n' "$RED" "$*" "$PLAIN" >&2
    exit 1
}

# A dot a second, until we are ended or the script is.
dots() {
    printf '      '
    while kill -0 $$ 2>/dev/null; do
        printf '.'
        sleep 1
    done
}

# excerpt LOG: what most likely says why it failed, then how it ended (with make -k these are far apart).
excerpt() {
    grep -E 'error:|Error [0-9]|\*\*\*|No rule' "$1" | head -n 15 | sed 's/^/      | /' || :
    printf '      | ...\n'
    tail -n 15 "$1" | sed 's/^/      | /'
}

# logged NAME COMMAND...: run it into $LOGS/NAME.log; on failure show the end of that log. On a
# terminal a line of dots shows that it lives.
logged() {
    logged_name=$1
    shift
    logged_file=$LOGS/$logged_name.log
    mkdir -p "$LOGS"
    logged_start=$(date +%s)
    logged_status=0
    if [ -t 1 ]; then
        # The dots are in the background, not the command: what runs there would not see Ctrl-C.
        dots &
        logged_dots=$!
        "$@" >"$logged_file" 2>&1 </dev/null || logged_status=$?
        kill "$logged_dots" 2>/dev/null || :
        wait "$logged_dots" 2>/dev/null || :
        printf '\r\033[K'
    else
        "$@" >"$logged_file" 2>&1 </dev/null || logged_status=$?
    fi
    if [ "$logged_status" -ne 0 ]; then
        printf '%s      failed (status %d): %s%s\n' "$RED" "$logged_status" "$*" "$PLAIN" >&2
        excerpt "$logged_file" >&2
        printf '      the whole log: %s\n' "$logged_file" >&2
        return "$logged_status"
    fi
    printf '      %s: %sdone%s in %d s\n' "$logged_name" "$GREEN" "$PLAIN" "$(($(date +%s) - logged_start))"
}

# missing_packages NAME...: those that are not installed.
missing_packages() {
    for package in "$@"; do
        case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
        *' installed') ;;
        *) printf '%s ' "$package" ;;
        esac
    done
}

# Who installs packages here: `root`, `sudo` (which may ask for a password), or why nobody can.
installer() {
    if [ "$(id -u)" -eq 0 ]; then
        echo root
    elif ! command -v sudo >/dev/null 2>&1; then
        echo "you are not root and there is no sudo"
    elif [ -t 0 ] || sudo -n true 2>/dev/null; then
        echo sudo
    else
        echo "sudo would ask for a password, but there is no terminal"
    fi
}

# may_install NAME...: who installs them is said, then it is asked, once for all that is missing. Ends where it cannot be done or
# may not. Without a terminal, or with ASSUME_YES=1, it does not ask.
may_install() {
    command -v dpkg-query >/dev/null 2>&1 ||
        fail "This script installs with apt-get, which Debian has. Elsewhere install what CONTRIBUTING.md lists, then: autoreconf -fi && ./configure && make"
    missing=$(missing_packages "$@")
    missing=${missing% }
    if [ -z "$missing" ]; then
        note "all $# packages are in place"
        return 0
    fi
    by_hand="apt-get install --no-install-recommends $missing"
    case $(installer) in
    root) note "to install with apt-get, as root: $missing" ;;
    sudo) note "to install with apt-get, by sudo: $missing" ;;
    *) fail "Packages are missing, and $(installer). As root: $by_hand" ;;
    esac
    if [ "${ASSUME_YES:-0}" != 1 ] && [ -t 0 ]; then
        printf '      Install them now? [Y/n] '
        read -r answer || answer=n
        case $answer in
        '' | [yY] | [yY][eE][sS]) ;;
        *) fail "Nothing was installed. As root: $by_hand" ;;
        esac
    fi
    if [ "$(id -u)" -ne 0 ] && [ -t 0 ]; then
        sudo true || fail "sudo refused. As root: $by_hand"
    fi
}

apt_get() {
    if [ "$(id -u)" -eq 0 ]; then
        env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@"
    elif [ -t 0 ]; then
        sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@"
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@"
    fi
}

apt_update_and_install() {
    apt_get update || printf 'apt-get update failed; trying with the lists that are there\n'
    apt_get install --no-install-recommends "$@"
}

# install_packages NAME...: those of them that are missing, or an end that says what to do.
install_packages() {
    missing=$(missing_packages "$@")
    # shellcheck disable=SC2086
    [ -z "$missing" ] || logged packages apt_update_and_install $missing || fail "The packages could not be installed."
}

# configured DIR OPTION...: configure there unless that was done with the same options.
configured() {
    configured_dir=$1
    shift
    configured_with="$TOP $*"
    if [ -f "$configured_dir/Makefile" ] && [ "$(cat "$configured_dir/.with" 2>/dev/null)" = "$configured_with" ]; then
        note "$configured_dir is configured"
        return 0
    fi
    rm -rf "$configured_dir"
    mkdir -p "$configured_dir"
    logged "configure-$(basename "$configured_dir")" in_dir "$configured_dir" "$TOP/configure" "$@" ||
        return 1
    printf '%s' "$configured_with" >"$configured_dir/.with"
}

in_dir() {
    in_dir_to=$1
    shift
    (cd "$in_dir_to" && "$@")
}

# generated: configure and its friends, once.
generated() {
    if [ -x "$TOP/configure" ] && [ "$TOP/configure" -nt "$TOP/configure.ac" ]; then
        note "configure is there"
        return 0
    fi
    logged autoreconf in_dir "$TOP" autoreconf -fi
}

# May this user write here? Said before a step fails for it.
writable_tree() {
    for where in "$TOP" "$TOP/build"; do
        if [ -e "$where" ] && [ ! -w "$where" ]; then
            fail "$where is not writable by $(id -un): clone the tree as this user (a build by root belongs to root)."
        fi
    done
}

BUILD_PACKAGES="gcc libc6-dev make autoconf automake pkg-config libevent-dev libssl-dev
    libjansson-dev libyaml-dev libseccomp-dev libsqlite3-dev libmnl-dev libnftnl-dev libc-ares-dev libzstd-dev zlib1g-dev libexpat1-dev libfuse3-dev
    libssh-dev libpg-query-dev libarchive-dev libhttp-parser-dev libnghttp2-dev bubblewrap"
