package netrule

import (
	"net/netip"

	"github.com/zephbot/zephbot/policy/reason"
)

// block is a range of addresses that are not public.
type block struct {
	prefix netip.Prefix
	name   string
}

func v4(a, b, c, d byte, bits int, name string) block {
	return block{netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, c, d}), bits), name}
}

func v6(high [8]byte, bits int, name string) block {
	var a [16]byte
	copy(a[:], high[:])
	return block{netip.PrefixFrom(netip.AddrFrom16(a), bits), name}
}

// special4 returns the IANA IPv4 Special-Purpose Address Registry (the ranges that are not globally reachable),
// multicast, and one address of a cloud's metadata service that looks public.
func special4() []block {
	return []block{
		v4(0, 0, 0, 0, 8, "this network"),
		v4(10, 0, 0, 0, 8, "private use"),
		v4(100, 64, 0, 0, 10, "shared address space"),
		v4(127, 0, 0, 0, 8, "loopback"),
		v4(169, 254, 0, 0, 16, "link local"),
		v4(172, 16, 0, 0, 12, "private use"),
		v4(192, 0, 0, 0, 24, "IETF protocol assignments"),
		v4(192, 0, 2, 0, 24, "documentation"),
		v4(192, 31, 196, 0, 24, "AS112"),
		v4(192, 52, 193, 0, 24, "AMT"),
		v4(192, 88, 99, 0, 24, "6to4 relay"),
		v4(192, 168, 0, 0, 16, "private use"),
		v4(192, 175, 48, 0, 24, "AS112"),
		v4(198, 18, 0, 0, 15, "benchmarking"),
		v4(198, 51, 100, 0, 24, "documentation"),
		v4(203, 0, 113, 0, 24, "documentation"),
		v4(224, 0, 0, 0, 4, "multicast"),
		v4(240, 0, 0, 0, 4, "reserved"),
		v4(168, 63, 129, 16, 32, "cloud metadata"),
	}
}

// special6 returns the ranges of the IANA IPv6 Special-Purpose Address Registry. Those outside of 2000::/3 are listed
// only for their names.
func special6() []block {
	return []block{
		v6([8]byte{}, 96, "loopback, unspecified or IPv4-compatible"),
		v6([8]byte{0, 0x64, 0xff, 0x9b}, 96, "NAT64"),
		v6([8]byte{0, 0x64, 0xff, 0x9b, 0, 1}, 48, "local NAT64"),
		v6([8]byte{0x01}, 64, "discard only"),
		v6([8]byte{0x20, 0x01}, 32, "Teredo"),
		v6([8]byte{0x20, 0x01}, 23, "IETF protocol assignments"),
		v6([8]byte{0x20, 0x01, 0x0d, 0xb8}, 32, "documentation"),
		v6([8]byte{0x20, 0x02}, 16, "6to4"),
		v6([8]byte{0x26, 0x20, 0, 0x4f, 0x80}, 48, "AS112"),
		v6([8]byte{0x3f, 0xfe}, 16, "6bone"),
		v6([8]byte{0x3f, 0xff}, 20, "documentation"),
		v6([8]byte{0x5f}, 16, "segment routing"),
		v6([8]byte{0xfc}, 7, "unique local"),
		v6([8]byte{0xfe, 0x80}, 10, "link local"),
		v6([8]byte{0xfe, 0xc0}, 10, "site local"),
		v6([8]byte{0xff}, 8, "multicast"),
	}
}

// CheckAddr refuses every address that is not a public unicast address: the ranges of the IANA special-purpose
// registries, multicast, reserved space and every IPv6 form that contains an IPv4 address (mapped, compatible, NAT64,
// 6to4, Teredo, ISATAP). For IPv6, it accepts only 2000::/3. The error is an *[Error] of [KindPrivate].
func CheckAddr(a netip.Addr) error {
	private := func(name string) error {
		return newError(KindPrivate, reason.AddressPrivate, a.String()+": "+name)
	}
	switch {
	case !a.IsValid():
		return newError(KindPrivate, reason.AddressPrivate, "no address")
	case a.Zone() != "":
		return private("scoped")
	}
	inner := a.Unmap()
	blocks := special6()
	if inner.Is4() {
		blocks = special4()
	}
	for _, b := range blocks {
		if b.prefix.Contains(inner) {
			return private(b.name)
		}
	}
	if inner.Is4() {
		return nil
	}
	raw := inner.As16()
	if raw[0]&0xe0 != 0x20 {
		return private("not global unicast")
	}
	// ISATAP (RFC 5214): the interface identifier is [02]00:5efe followed by an IPv4 address, to which a router may
	// tunnel.
	if raw[8]&^0x03 == 0 && raw[9] == 0 && raw[10] == 0x5e && raw[11] == 0xfe {
		return private("ISATAP")
	}
	return nil
}
