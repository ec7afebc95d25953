#!/bin/sh
# Run as root on a node that has the repositories below /srv/repositories: the distribution's becomes its own, as an
# installed system has it, the vendors' stay unknown to it. The running kernel, which is the lab's host's, gets headers.
set -eu
repositories=/srv/repositories
mkdir -p "/lib/modules/$(uname -r)/build"
touch "/lib/modules/$(uname -r)/build/Makefile"
if command -v apt-get >/dev/null; then
    cat >/etc/apt/sources.list.d/ubuntu.sources <<END
Types: deb
URIs: file://$repositories/distribution/ubuntu2404
Suites: ./
Signed-By: $repositories/keys/distribution.asc
END
    apt-get update -qq
else
    cat >/etc/yum.repos.d/rocky.repo <<END
[baseos]
name=Stand-ins for the distribution's packages
baseurl=file://$repositories/distribution/rhel9
gpgcheck=1
repo_gpgcheck=1
gpgkey=file://$repositories/keys/distribution.asc
END
    rpm --import "$repositories/keys/distribution.asc"
fi
