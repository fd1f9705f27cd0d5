/// \file
/// What a shared library of Antipode shows: what stands in the namespaces that this marks. All else is hidden.
#ifndef ANTIPODE_EXPORT_H_
#define ANTIPODE_EXPORT_H_

#define ANTIPODE_EXPORT __attribute__((visibility("default")))

#endif  // ANTIPODE_EXPORT_H_
