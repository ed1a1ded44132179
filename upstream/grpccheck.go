package upstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/internal/http1"
)

// grpcHealthPath is the path of a call of the method Check of gRPC's health service.
const grpcHealthPath = "/grpc.health.v1.Health/Check"

// servingStatus names the values of HealthCheckResponse.ServingStatus.
var servingStatus = [...]string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}

const serving = 1

// probeGRPC runs a check by gRPC's health service.
func (g *Group) probeGRPC(ctx context.Context, addr http1.Addr) error {
	r, err := g.probeRequest(ctx, addr, http.MethodPost, grpcHealthPath, grpcMessage(g.o.Check.GRPCService))
	if err != nil {
		return err
	}
	r.Header["Content-Type"] = []string{"application/grpc"}
	r.Header["Te"] = []string{"trailers"}
	resp, err := g.checkTransport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.ProtoMajor != 2:
		return fmt.Errorf("the target speaks %s, not HTTP/2", resp.Proto)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", resp.StatusCode)
	case !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/grpc"):
		return fmt.Errorf("Content-Type %.64q is not gRPC's", resp.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProbeBody+1))
	switch {
	case err != nil:
		return err
	case len(body) > maxProbeBody:
		return fmt.Errorf("the response is longer than %d bytes", maxProbeBody)
	}
	return grpcResult(resp, body)
}

// grpcMessage returns a HealthCheckRequest (string service = 1) with the prefix of a gRPC message.
func grpcMessage(service string) []byte {
	m := make([]byte, 5, 5+1+binary.MaxVarintLen64+len(service))
	if service != "" {
		m = append(m, 1<<3|2)
		m = binary.AppendUvarint(m, uint64(len(service)))
		m = append(m, service...)
	}
	binary.BigEndian.PutUint32(m[1:], uint32(len(m)-5))
	return m
}

// grpcResult returns an error if a response with the given body, which was read to its end, is not SERVING.
func grpcResult(resp *http.Response, body []byte) error {
	trailer := resp.Trailer
	if len(body) == 0 && trailer.Get("Grpc-Status") == "" {
		trailer = resp.Header // a response of trailers only
	}
	switch code := trailer.Get("Grpc-Status"); {
	case code == "":
		return errors.New("a gRPC response without grpc-status")
	case code != "0":
		return fmt.Errorf("gRPC status %.16q: %.256q", code, trailer.Get("Grpc-Message"))
	case len(body) < 5 || uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-5):
		return errors.New("the response is not one gRPC message")
	case body[0] != 0:
		return errors.New("the gRPC message is compressed")
	}
	status, err := parseServing(body[5:])
	switch {
	case err != nil:
		return err
	case status == serving:
		return nil
	case status < uint64(len(servingStatus)):
		return errors.New(servingStatus[status])
	}
	return fmt.Errorf("serving status %d", status)
}

var errProtobuf = errors.New("the gRPC message is not a HealthCheckResponse")

// parseServing returns the status of a HealthCheckResponse (ServingStatus status = 1).
func parseServing(m []byte) (status uint64, err error) {
	for len(m) > 0 {
		tag, n := binary.Uvarint(m)
		if n <= 0 {
			return 0, errProtobuf
		}
		value, n2 := binary.Uvarint(m[n:]) // or the length of a field with one
		size := uint64(0)
		switch tag & 7 {
		case 0:
		case 1:
			n2, size = 0, 8
		case 2:
			size = value
		case 5:
			n2, size = 0, 4
		default:
			return 0, errProtobuf
		}
		if varint := tag&7 == 0 || tag&7 == 2; varint && n2 <= 0 || size > uint64(len(m)-n-n2) {
			return 0, errProtobuf
		}
		if tag == 1<<3 {
			status = value
		}
		m = m[n+n2+int(size):]
	}
	return status, nil
}
