# The box's own loopback. Every box of this machine shares its 127.0.0.1, so what a box serves is on the box's address;
# a request to 127.0.0.1 or localhost goes there.

class BoxLoopback : Net.IWebRequestCreate {
    [string] $Address

    BoxLoopback([string] $address) { $this.Address = $address }

    [Net.WebRequest] Create([Uri] $uri) {
        $there = [UriBuilder]::new($uri)
        $there.Host = $this.Address
        $request = [Net.WebRequest]::CreateHttp($there.Uri)
        $request.Host = $uri.Authority
        return $request
    }
}

foreach ($name in '127.0.0.1', 'localhost') {
    foreach ($scheme in 'http', 'https') {
        [void] [Net.WebRequest]::RegisterPrefix("${scheme}://$name", [BoxLoopback]::new($env:SIMBOX_ADDRESS))
    }
}
