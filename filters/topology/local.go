package topology

import (
	"encoding/binary"
	"encoding/json"
	"net/netip"
	"strconv"

	"github.com/culvert-go/culvert/watchcodec"
)

// The annotations by which SuperEdge has the pods of a node find the API server at the
// node's own gateway (github.com/superedge/superedge, pkg/application-grid-wrapper).
const (
	localEndpoint = "superedge.io/local-endpoint"
	localPort     = "superedge.io/local-port"
)

// local puts the node's own gateway into default/kubernetes, if its annotations tell one.
// What they tell must be an address and a port.
func local(o *watchcodec.Object) (done bool, err error) {
	if string(o.Namespace()) != "default" {
		return false, nil
	}
	if service, _ := o.Label(serviceLabel); string(o.Name()) != "kubernetes" && string(service) != "kubernetes" {
		return false, nil
	}
	address, ok := o.Annotation(localEndpoint)
	number, okPort := o.Annotation(localPort)
	ip, err := netip.ParseAddr(string(address))
	port, errPort := strconv.ParseUint(string(number), 10, 16)
	if !ok || !okPort || err != nil || errPort != nil {
		return false, nil
	}
	return true, o.Edit(localEdits(isSlice(o), ip.String(), port)...)
}

// localEdits replace what there is by one address and the port "https".
func localEdits(slice bool, address string, port uint64) []watchcodec.Edit {
	quoted, err := json.Marshal(address)
	if err != nil {
		panic(err) // it is a string
	}
	number := strconv.FormatUint(port, 10)
	if slice {
		return []watchcodec.Edit{
			watchcodec.SetRaw(`[{"addresses":[`+string(quoted)+`],"conditions":{"ready":true}}]`, field(1, address)+field(2, "\x08\x01"), endpointsField),
			watchcodec.SetRaw(`[{"name":"https","protocol":"TCP","port":`+number+`}]`, field(1, "https")+field(2, "TCP")+"\x18"+varint(port), portsField),
		}
	}
	return []watchcodec.Edit{watchcodec.SetRaw(
		`[{"addresses":[{"ip":`+string(quoted)+`}],"ports":[{"name":"https","port":`+number+`,"protocol":"TCP"}]}]`,
		field(1, field(1, address)+field(2, ""))+field(3, field(1, "https")+"\x10"+varint(port)+field(3, "TCP")),
		subsetsField)}
}

// field is a field of bytes in protobuf.
func field(number byte, content string) string {
	return string(number<<3|2) + varint(uint64(len(content))) + content
}

func varint(n uint64) string { return string(binary.AppendUvarint(nil, n)) }
