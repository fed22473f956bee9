"""Scrapes over HTTP: timed one after the other, or once a second in the background."""
import http.client
import threading
import time
import urllib.parse
import urllib.request

KINDS = {"same_connection": "same connection", "new_connection": "new each time",
         "while_the_driver_hangs": "while no driver call returns"}

def get(url):
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.read()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def durations(url, count, reuse):
    """Time from sending the request (or opening the connection) to the last byte of the answer."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    times = []
    for _ in range(count):
        start = time.perf_counter()
        connection.request("GET", parts.path)
        connection.getresponse().read()
        if not reuse:
            connection.close()
        times.append(time.perf_counter() - start)
        time.sleep(0.002)
    connection.close()
    return {"count": count, "p50_seconds": percentile(times, 0.5),
            "p99_seconds": percentile(times, 0.99), "max_seconds": max(times)}


class EverySecond:
    """Reads each address once a second until the end of the `with`."""

    def __init__(self, urls):
        self.urls = urls
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.scrape)

    def scrape(self):
        while not self.stop.wait(1.0):
            for url in self.urls:
                get(url)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
