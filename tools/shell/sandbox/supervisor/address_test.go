package supervisor_test

import (
	"net/netip"
	"testing"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// TestAttackAddresses: every way to write an address of this machine, its link or a cloud's metadata is refused.
func TestAttackAddresses(t *testing.T) {
	t.Parallel()
	g := &supervisor.Guard{
		Own:     [][]byte{netip.MustParseAddr("192.0.2.7").AsSlice(), netip.MustParseAddr("2001:db8::7").AsSlice()},
		Servers: [][]byte{netip.MustParseAddr("127.0.0.53").AsSlice(), netip.MustParseAddr("fe80::1").AsSlice()},
	}
	for ip, want := range map[string]bool{
		"8.8.8.8": true, "10.0.0.1": true, "172.16.0.1": true, "192.168.1.1": true, "192.0.2.8": true, "100.64.0.1": true,
		"2606:4700::1111": true, "fd12::1": true, "2001:db8::8": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true,
		"127.0.0.1": false, "127.255.255.255": false, "0.0.0.0": false, "0.1.2.3": false, "169.254.169.254": false, "169.254.0.1": false,
		"100.100.100.200": false, "192.0.0.192": false, "168.63.129.16": false, "224.0.0.1": false, "239.255.255.250": false, "255.255.255.255": false,
		"192.0.2.7": false, "2001:db8::7": false, "::ffff:192.0.2.7": false,
		"::": false, "::1": false, "::127.0.0.1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "64:ff9b::7f00:1": false,
		"2002:7f00:1::": false, "2002:a9fe:a9fe::1": false, "fe80::1": false, "febf::1": false, "fec0::1": false, "ff02::1": false,
		"fd00:ec2::254": false, "fd20:ce::254": false, "fd00:c1a::254": false, "127.0.0.53": false, "::ffff:127.0.0.53": false,
	} {
		if got := g.Allows(netip.MustParseAddr(ip).AsSlice(), 443); got != want {
			t.Errorf("Allows(%s, 443) = %t, want %t", ip, got, want)
		}
	}
	for _, server := range []string{"127.0.0.53", "::ffff:127.0.0.53", "fe80::1"} {
		if !g.Allows(netip.MustParseAddr(server).AsSlice(), 53) {
			t.Errorf("the name server %s is out of reach", server)
		}
	}
	if g.Allows(netip.MustParseAddr("127.0.0.1").AsSlice(), 53) || g.Allows(nil, 443) || g.Allows([]byte{8, 8, 8}, 443) {
		t.Error("what is no public address was allowed")
	}
}
