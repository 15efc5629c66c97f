package supervisor

// Address families, as in the first two bytes of a sockaddr.
const (
	familyNone    = 0
	familyUnix    = 1
	familyIPv4    = 2
	familyIPv6    = 10
	familyNetlink = 16
)

const dnsPort = 53

// Allows reports whether a command may reach the internet address ip (4 or 16 bytes) at a port. Refused are this
// machine, its link, and the services from which clouds provide secrets to their machines. Private networks are
// allowed, because they belong to somebody else.
func (g *Guard) Allows(ip []byte, port int) bool {
	for _, server := range g.Servers {
		if port == dnsPort && sameAddress(server, ip) {
			return true
		}
	}
	for _, own := range g.Own {
		if sameAddress(own, ip) {
			return false
		}
	}
	switch len(ip) {
	case 4:
		return publicIPv4(ip)
	case 16:
		if v4 := embeddedIPv4(ip); v4 != nil {
			return g.Allows(v4, port)
		}
		return publicIPv6(ip)
	default:
		return false
	}
}

// sameAddress compares addresses. An IPv4 address may be written as IPv6.
func sameAddress(a, b []byte) bool {
	if len(a) == 16 && hasPrefix(a, mapped) {
		a = a[12:]
	}
	if len(b) == 16 && hasPrefix(b, mapped) {
		b = b[12:]
	}
	return string(a) == string(b)
}

// Prefixes of addresses.
var (
	mapped     = []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}
	compatible = make([]byte, 12)
	nat64      = []byte{0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0}
	loopback6  = append(make([]byte, 15), 1)
	sixToFour  = []byte{0x20, 0x02}
)

// embeddedIPv4 returns the IPv4 address contained in an IPv6 address, or nil.
func embeddedIPv4(ip []byte) []byte {
	switch {
	case hasPrefix(ip, mapped), hasPrefix(ip, nat64):
		return ip[12:]
	case hasPrefix(ip, sixToFour):
		return ip[2:6]
	case hasPrefix(ip, compatible) && string(ip) != string(loopback6):
		return ip[12:]
	default:
		return nil
	}
}

// metadata4 and metadata6 are where clouds provide secrets to a machine, outside the link-local addresses.
var (
	metadata4 = [][]byte{{100, 100, 100, 200}, {192, 0, 0, 192}, {168, 63, 129, 16}}
	metadata6 = [][]byte{
		{0xfd, 0x00, 0x0e, 0xc2, 14: 0x02, 15: 0x54}, // fd00:ec2::254
		{0xfd, 0x20, 0x00, 0xce, 14: 0x02, 15: 0x54}, // fd20:ce::254
		{0xfd, 0x00, 0x0c, 0x1a, 14: 0x02, 15: 0x54},
	}
)

func publicIPv4(ip []byte) bool {
	switch {
	case ip[0] == 0, ip[0] == 127: // this machine
		return false
	case ip[0] == 169 && ip[1] == 254: // the link
		return false
	case ip[0] >= 224: // multicast and reserved addresses
		return false
	}
	return !isListed(metadata4, ip)
}

func publicIPv6(ip []byte) bool {
	switch {
	case string(ip) == string(loopback6):
		return false
	case ip[0] == 0xfe && ip[1]&0x80 == 0x80:
		// the link (fe80::/10), and the predecessor of private networks (fec0::/10)
		return false
	case ip[0] == 0xff:
		return false
	}
	return !isListed(metadata6, ip)
}

func isListed(list [][]byte, ip []byte) bool {
	for _, l := range list {
		if string(l) == string(ip) {
			return true
		}
	}
	return false
}
