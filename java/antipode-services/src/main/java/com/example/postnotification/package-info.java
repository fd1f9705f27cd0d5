/** Post-notification's services in Java: what benchmarks/services.md says of a host. In a package as applications have them. */
package com.example.postnotification;
