/// \file
/// Antipode: cross-service causal consistency. Everything that an application uses.
#ifndef ANTIPODE_ANTIPODE_H_
#define ANTIPODE_ANTIPODE_H_

#include "antipode/barrier.h"
#include "antipode/carrier.h"
#include "antipode/carry.h"
#include "antipode/fallback.h"
#include "antipode/lineage.h"
#include "antipode/logs.h"
#include "antipode/messages.h"
#include "antipode/propagation.h"
#include "antipode/reading.h"
#include "antipode/response_stream.h"
#include "antipode/result.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "antipode/store.h"
#include "antipode/telemetry.h"
#include "antipode/write_id.h"

#endif  // ANTIPODE_ANTIPODE_H_
