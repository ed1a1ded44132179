package topology

import (
	"encoding/binary"
	"encoding/json"
	"net/netip"
	"strconv"

	"github.com/culvert-go/culvert/watchcodec"
)

// The annotations by which SuperEdge directs the pods of a node to the node's own gateway as
// the API server (github.com/superedge/superedge, pkg/application-grid-wrapper).
const (
	localEndpoint = "superedge.io/local-endpoint"
	localPort     = "superedge.io/local-port"
)

// setLocalEndpoint replaces the endpoints of default/kubernetes by the node's own gateway, if o is
// that object and its annotations are an address and a port. It reports whether it did.
func setLocalEndpoint(o *watchcodec.Object) (done bool, err error) {
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

// localEdits returns the edits that replace all endpoints by one with the address and the port "https".
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

// field returns a length-delimited field in protobuf.
func field(number byte, content string) string {
	return string(number<<3|2) + varint(uint64(len(content))) + content
}

func varint(n uint64) string { return string(binary.AppendUvarint(nil, n)) }
