// Package listers implements topology.Inputs with client-go's informers, for programs that have
// them anyway. It is a module of its own: client-go is heavy.
package listers

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/culvert-go/culvert/filters/topology"
)

// Inputs are the nodes and services of informers.
type Inputs struct {
	nodes    corelisters.NodeLister
	services corelisters.ServiceLister
	synced   []cache.InformerSynced
	topology.Subscribers
}

// New returns Inputs from a factory's informers, which the caller starts. What New starts itself
// ends with ctx.
func New(ctx context.Context, factory informers.SharedInformerFactory) (*Inputs, error) {
	nodes, services := factory.Core().V1().Nodes(), factory.Core().V1().Services()
	i := &Inputs{nodes: nodes.Lister(), services: services.Lister()}
	for _, informer := range []cache.SharedIndexInformer{nodes.Informer(), services.Informer()} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { i.Changed(nameOf(o)) },
			UpdateFunc: i.updated,
			DeleteFunc: func(o any) { i.Changed(nameOf(o)) },
		})
		if err != nil {
			return nil, err
		}
		i.synced = append(i.synced, registration.HasSynced)
	}
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), i.synced...) {
			i.Changed("")
		}
	}()
	return i, nil
}

// nameOf returns the name under which an object's change is reported.
func nameOf(o any) string {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	switch o := o.(type) {
	case *corev1.Node:
		return topology.NodeName(o.Name)
	case *corev1.Service:
		return topology.ServiceName(o.Namespace, o.Name)
	}
	return ""
}

// updated reports changes on which decisions may depend: nodes change every few seconds.
func (i *Inputs) updated(before, after any) {
	switch after := after.(type) {
	case *corev1.Node:
		if maps.Equal(before.(*corev1.Node).Labels, after.Labels) {
			return
		}
	case *corev1.Service:
		if a, b := serviceOf(before.(*corev1.Service)), serviceOf(after); a.TrafficDistribution == b.TrafficDistribution && maps.Equal(a.Annotations, b.Annotations) {
			return
		}
	}
	i.Changed(nameOf(after))
}

// Labels implements topology.Inputs.
func (i *Inputs) Labels(node string) (map[string]string, bool) {
	n, err := i.nodes.Get(node)
	if err != nil {
		return nil, false
	}
	return n.Labels, true
}

// Service implements topology.Inputs.
func (i *Inputs) Service(namespace, name string) (topology.Service, bool) {
	s, err := i.services.Services(namespace).Get(name)
	if err != nil {
		return topology.Service{}, false
	}
	return serviceOf(s), true
}

func serviceOf(s *corev1.Service) topology.Service {
	service := topology.Service{Annotations: s.Annotations}
	if s.Spec.TrafficDistribution != nil {
		service.TrafficDistribution = *s.Spec.TrafficDistribution
	}
	return service
}

// Synced implements topology.Inputs.
func (i *Inputs) Synced() bool {
	for _, synced := range i.synced {
		if !synced() {
			return false
		}
	}
	return true
}
