package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// kubeconfig is the part of a kubeconfig that is used (k8s.io/client-go/tools/clientcmd/api/v1).
type kubeconfig struct {
	CurrentContext string `yaml:"current-context"`
	Contexts       []struct {
		Name    string `yaml:"name"`
		Context struct {
			Cluster string `yaml:"cluster"`
			User    string `yaml:"user"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string `yaml:"name"`
		Cluster struct {
			Server     string `yaml:"server"`
			CA         string `yaml:"certificate-authority"`
			CAData     string `yaml:"certificate-authority-data"`
			ServerName string `yaml:"tls-server-name"`
			Insecure   bool   `yaml:"insecure-skip-tls-verify"`
			Proxy      string `yaml:"proxy-url"`
		} `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string `yaml:"name"`
		User struct {
			Token     string    `yaml:"token"`
			TokenFile string    `yaml:"tokenFile"`
			Cert      string    `yaml:"client-certificate"`
			CertData  string    `yaml:"client-certificate-data"`
			Key       string    `yaml:"client-key"`
			KeyData   string    `yaml:"client-key-data"`
			Username  string    `yaml:"username"`
			Exec      yaml.Node `yaml:"exec"`
			Provider  yaml.Node `yaml:"auth-provider"`
		} `yaml:"user"`
	} `yaml:"users"`
}

// readKubeconfig returns the cluster of a context, "" for the current one.
func readKubeconfig(file, context string) (cluster, error) {
	c := cluster{}
	text, err := os.ReadFile(file)
	if err != nil {
		return c, fmt.Errorf("-kubeconfig: %w", err)
	}
	var k kubeconfig
	if err := yaml.Unmarshal(text, &k); err != nil {
		return c, fmt.Errorf("-kubeconfig %s: %w", file, err)
	}
	if context == "" {
		context = k.CurrentContext
	}
	c, err = k.cluster(context, filepath.Dir(file))
	if err != nil {
		return c, fmt.Errorf("-kubeconfig %s: %w", file, err)
	}
	return c, nil
}

func (k *kubeconfig) cluster(context, dir string) (c cluster, err error) {
	clusterName, userName, found := "", "", false
	for _, entry := range k.Contexts {
		if entry.Name == context {
			clusterName, userName, found = entry.Context.Cluster, entry.Context.User, true
		}
	}
	if !found {
		return c, fmt.Errorf("no context %q in it", context)
	}
	found = false
	for _, entry := range k.Clusters {
		if of := entry.Cluster; entry.Name == clusterName {
			found = true
			c.server, c.caFile, c.serverName, c.insecure = of.Server, beside(dir, of.CA), of.ServerName, of.Insecure
			if c.ca, err = decode("certificate-authority-data", of.CAData); err != nil {
				return c, err
			}
			if of.Proxy != "" {
				return c, fmt.Errorf("the cluster %q has a proxy-url, which this gateway does not do", clusterName)
			}
		}
	}
	if !found || c.server == "" {
		return c, fmt.Errorf("no server of a cluster %q in it", clusterName)
	}
	return c, k.user(userName, dir, &c)
}

func (k *kubeconfig) user(name, dir string, c *cluster) (err error) {
	for _, entry := range k.Users {
		of := entry.User
		if entry.Name != name {
			continue
		}
		if of.Exec.Kind != 0 || of.Provider.Kind != 0 || of.Username != "" {
			return fmt.Errorf("the user %q has a command, a provider or a password for credentials; this gateway knows tokens and certificates", name)
		}
		c.token, c.tokenFile, c.certFile, c.keyFile = of.Token, beside(dir, of.TokenFile), beside(dir, of.Cert), beside(dir, of.Key)
		if c.cert, err = decode("client-certificate-data", of.CertData); err != nil {
			return err
		}
		c.key, err = decode("client-key-data", of.KeyData)
		return err
	}
	return fmt.Errorf("no user %q in it", name)
}

func decode(field, text string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return data, nil
}

// beside makes a file's name relative to the folder of the kubeconfig.
func beside(dir, file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}
