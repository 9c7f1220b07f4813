# The Debian 12 packages of this project, in one place. Sourced by run, test and bench:
#   install_packages build test     installs what is missing from these sets
#   packages_of_libraries PROGRAM   what another machine needs to run it
# "npm/npm" is the package npm, not needed where a command npm is there from elsewhere.
# As root it installs by itself; otherwise it says the one command to type.

packages_build="g++ cmake ninja-build ccache pkg-config python3 ca-certificates tzdata
    libabsl-dev libboost1.81-dev libssl-dev libsodium-dev libyaml-cpp-dev libspdlog-dev
    libcli11-dev nlohmann-json3-dev libsimdjson-dev libsqlite3-dev libxxhash-dev prometheus-cpp-dev
    libcurl4-openssl-dev"
packages_run="curl"
packages_redis="redis-server"
packages_test="curl openssl redis-server libgtest-dev libgmock-dev librapidcheck-dev
    clang-16 clang-tidy-16 clang-format-16 libclang-rt-16-dev chromium chromium-driver
    nodejs/node npm/npm python3-venv"
packages_bench="curl libbenchmark-dev wrk nginx haproxy redis-server nodejs/node npm/npm python3-venv"

install_packages() {
    local set variable missing=() package
    for set in "$@"; do
        variable="packages_$set"
        for package in ${!variable}; do
            [[ $package == */* ]] && command -v "${package#*/}" >/dev/null && continue
            package=${package%/*}
            if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
                missing+=("$package")
            fi
        done
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    local install="apt-get install -y --no-install-recommends ${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        echo "Some Debian packages are missing. Install them, then start again:" >&2
        echo "  sudo $install" >&2
        return 1
    fi
    echo "Installing ${#missing[@]} Debian packages: ${missing[*]}"
    local log
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    if { apt-get -o DPkg::Lock::Timeout=300 update && apt-get -o DPkg::Lock::Timeout=300 ${install#apt-get }; } \
        >"$log" 2>&1 </dev/null; then
        rm -f "$log"
        return 0
    fi
    tail -20 "$log" >&2
    echo "apt-get failed; its output is in $log" >&2
    return 1
}

# The packages that have the shared libraries of a program, one a line. With /usr merged a library has
# two paths; dpkg knows the one that its package was made with.
packages_of_libraries() { # program
    local library
    ldd "$1" | awk '$3 ~ /^\// {print $3}' | while read -r library; do
        dpkg -S "$library" 2>/dev/null || dpkg -S "/usr$library" 2>/dev/null ||
            dpkg -S "${library#/usr}" 2>/dev/null ||
            { echo "no package has $library, which $1 needs" >&2; exit 1; }
    done | cut -d: -f1 | sort -u
    return "${PIPESTATUS[2]}"
}

# Valkey 8 is in bookworm-backports only: fetched from the mirror that the machine has bookworm from
# and unpacked into build/valkey for the tests of counters on Redis, which run on it too where it is.
# Nothing of the system changes; without it they go without.
fetch_valkey() {
    local into=build/valkey
    [ -x "$into/usr/bin/valkey-server" ] && return 0
    local state mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -1)
    state=$(mktemp -d) || return 0
    mkdir -p "$state/lists/partial" "$state/archives/partial"
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$keyring] $mirror bookworm-backports main" >"$state/sources.list"
    local options=(-o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state" -o Acquire::Retries=2
        -o Acquire::http::Timeout=20)
    if (cd "$state" && apt-get "${options[@]}" update && apt-get "${options[@]}" download valkey-server valkey-tools) \
        >"$state/log" 2>&1 </dev/null; then
        mkdir -p "$into"
        local package
        for package in "$state"/valkey-*.deb; do
            dpkg-deb -x "$package" "$into"
        done
        "$into/usr/bin/valkey-server" --version >/dev/null 2>&1 || rm -rf "$into"
    fi
    [ -x "$into/usr/bin/valkey-server" ] || echo "Valkey cannot be had here; its tests run on Redis alone."
    rm -rf "$state"
}
