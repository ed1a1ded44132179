package watchcodec_test

import (
	"bytes"

	carpv1 "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/culvert-go/culvert/watchcodec"
)

// carps is the scheme of apimachinery's test group.
var carps = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := carpv1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}()

// The codecs with which an API server encodes responses.
var (
	kubernetesJSON     = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, carps, carps, jsonserializer.SerializerOptions{})
	kubernetesProtobuf = protobuf.NewSerializer(carps, carps)
)

// encodeAs encodes an object as an API server does.
func encodeAs(f watchcodec.Format, o runtime.Object) []byte {
	var b bytes.Buffer
	codec := runtime.Encoder(kubernetesJSON)
	if f == watchcodec.Protobuf {
		codec = kubernetesProtobuf
	}
	if err := codec.Encode(o, &b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// decodeCarp decodes an item of a list.
func decodeCarp(f watchcodec.Format, raw []byte) (*carpv1.Carp, error) {
	o := new(carpv1.Carp)
	if f == watchcodec.Protobuf {
		return o, o.Unmarshal(raw)
	}
	_, _, err := kubernetesJSON.Decode(raw, nil, o)
	return o, err
}
