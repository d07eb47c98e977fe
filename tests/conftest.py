"""Settings that every test shares."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported: the test workers share the cores

import ipaddress
import socket

import pytest
from hypothesis import settings

settings.register_profile("halfwidth", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("halfwidth")


@pytest.fixture(scope="session")
def empty_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _no_network(request, monkeypatch, empty_cache):
    """A test that is not marked `network` reaches this machine only, pip included, and finds no data fetched before."""
    if request.node.get_closest_marker("network"):
        return
    monkeypatch.setenv("HALFWIDTH_CACHE", str(empty_cache))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    connect = socket.socket.connect

    def local_only(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(address[0]):
            raise RuntimeError(f"this test reaches for {address}: mark it network, or give it data of its own")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local_only)


def _is_local(host):
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or str(address) in _own_addresses()


def _own_addresses():
    return {entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), None)}
